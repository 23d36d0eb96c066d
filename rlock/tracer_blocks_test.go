package rlock_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A caller that finds others waiting is not in the queue yet when it tells its tracer.
func TestTracerThatBlocksAWaiterDelaysNoOther(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var waits atomic.Int32
	blocked, unblock := make(chan struct{}), make(chan struct{})
	tr := &locktest.Tracer{Block: func(event any) {
		if _, is := event.(rlock.WaitStart); !is {
			return
		}
		if waits.Add(1) == 2 {
			close(blocked)
			<-unblock
		}
	}}
	c := newClient(t, s, rlock.Options{Tracer: tr})
	lock := c.NewLock("order")
	hold := take(t, lock, longLease)
	first := parkedWaiter(t, s, lock)
	second := lockInBackground(t.Context(), lock, longLease)
	receive(t, blocked, "the second does not wait")
	require.Equal(t, 1, rlock.Waiting(lock))
	unlock(t, hold)
	unlock(t, acquired(t, first))
	unlock(t, take(t, lock, longLease))
	close(unblock)
	unlock(t, acquired(t, second))
}
