package rlocktest

import (
	"holdfast/internal/compose"
	"holdfast/rlock"
)

// What the checks must know of clients and holds beyond their public methods.
var (
	watch = rlock.Internals(compose.Access{})
	onEnd = watch.OnEnd
)
