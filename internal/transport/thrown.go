package transport

import (
	"errors"
	"runtime"
)

// ErrThrown is the error of a command that a hook around rueidis ended by a panic or by
// runtime.Goexit. Redis may have executed it.
var ErrThrown = errors.New("a hook of the Redis client panicked or ended the goroutine")

// thrown is how foreign code ended a command that a worker sent. It goes on in the caller, who
// waits for the outcome: in a goroutine of ours a panic would end the process, and Goexit nothing.
type thrown struct{ panicked any } // nil for Goexit

// raise does the same in the calling goroutine, unless there is nothing to raise.
func (t *thrown) raise() {
	switch {
	case t == nil:
	case t.panicked != nil:
		panic(t.panicked)
	default:
		runtime.Goexit()
	}
}
