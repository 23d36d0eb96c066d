package redlock_test

import (
	"context"
)

// waiting is a context that reports when a call waits for its end: for a RedLock, when it has asked
// the nodes, or is queued behind one that has.
type waiting struct {
	context.Context
	begun chan struct{}
}

func (w waiting) Done() <-chan struct{} {
	select {
	case w.begun <- struct{}{}:
	default:
	}
	return w.Context.Done()
}
