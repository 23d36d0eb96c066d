package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
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

func TestUnlockWakesAWaiterOfThisAndOfAnotherProcess(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	mine := redlock.NewOn(name, atOnce, clients...)
	for _, other := range []*redlock.Lock{
		mine, redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...),
	} {
		bestOf(t, soon, func() time.Duration {
			hold := take(t, mine, longLease)
			done := queueUp(t.Context(), t, other, longLease)
			waitForListeners(t, servers, name, 1)
			callsDuring(t, servers, 0) // until it has asked for the last time
			start := time.Now()
			unlock(t, hold)
			next := result(t, done)
			require.NoError(t, next.Err)
			unlock(t, next.Hold)
			return next.At.Sub(start)
		})
	}
	waitUntilFree(t, servers...)
}

func TestWaiterThatLeavesDoesNotKeepTheNextOneFromTheLock(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	l := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	bestOf(t, soon, func() time.Duration {
		hold := take(t, l, longLease)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		head := queueUp(ctx, t, l, longLease)
		waitForListeners(t, servers, name, 1)
		second := queueUp(t.Context(), t, l, longLease)
		third := queueUp(ctx, t, l, longLease)
		start := time.Now()
		go cancel() // at the same time
		unlock(t, hold)
		for _, leaving := range []<-chan outcome{head, third} {
			if o := result(t, leaving); o.Err == nil {
				unlock(t, o.Hold)
			}
		}
		next := result(t, second)
		require.NoError(t, next.Err)
		unlock(t, next.Hold)
		return next.At.Sub(start)
	})
	waitUntilFree(t, servers...)
}

// A head that leaves may have been woken by a release that is still unused.
func TestNextInTheQueueAsksAtOnceWhenTheHeadLeaves(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 1)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	l := redlock.NewOn("another", atOnce, clients...)
	bestOf(t, soon, func() time.Duration {
		giveOne(t, servers, "another")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		head := queueUp(ctx, t, l, longLease)
		waitForListeners(t, servers, "another", 1)
		require.Zero(t, callsDuring(t, servers, 0))
		next := queueUp(t.Context(), t, l, longLease)
		servers[0].Do(t, "DEL", "another") // without an announcement
		start := time.Now()
		cancel()
		require.Error(t, result(t, head).Err)
		o := result(t, next)
		require.NoError(t, o.Err)
		unlock(t, o.Hold)
		return o.At.Sub(start)
	})
	waitUntilFree(t, servers...)
}
