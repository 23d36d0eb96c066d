package rlocktest

import (
	"holdfast/internal/hooks"
	"holdfast/rlock"
)

// What the checks must know of clients and holds beyond their public methods.
var (
	watch = hooks.GetTest[*rlock.Client, *rlock.Hold]()
	onEnd = hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd
)
