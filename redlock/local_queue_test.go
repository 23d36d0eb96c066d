package redlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestWaitersOfOneProcessGetTheLockInTheirOrder(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	backwards := slices.Clone(clients)
	slices.Reverse(backwards)
	hold := take(t, redlock.NewOn(name, atOnce, clients...), longLease)
	var waiters []<-chan outcome
	for i := range 6 {
		// Locks of the same nodes in any order are one lock, with one queue.
		nodes := clients
		if i%2 == 1 {
			nodes = backwards
		}
		waiters = append(waiters,
			queueUp(t.Context(), t, redlock.NewOn(name, atOnce, nodes...), longLease))
		if i == 0 {
			waitForListeners(t, servers, name, 1)
		}
	}
	for i, w := range waiters {
		unlock(t, hold)
		hold = acquired(t, w)
		for _, later := range waiters[i+1:] {
			require.Empty(t, later)
		}
	}
	unlock(t, hold)
	waitUntilFree(t, servers...)
}

func TestWaiterBehindOthersThatLeftGetsTheLock(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 1)
	l := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	for _, order := range [][]int{{1, 2}, {2, 1}, {0, 1}, {1, 0}, {0, 2}} {
		hold := take(t, l, longLease)
		var waiters []<-chan outcome
		var cancels []context.CancelFunc
		for range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waiters = append(waiters, queueUp(ctx, t, l, longLease))
			cancels = append(cancels, cancel)
		}
		for _, i := range order {
			cancels[i]()
			require.ErrorIs(t, result(t, waiters[i]).Err, context.Canceled)
		}
		for i, w := range waiters {
			if !slices.Contains(order, i) {
				unlock(t, hold)
				hold = acquired(t, w)
			}
		}
		unlock(t, hold)
	}
	waitUntilFree(t, servers...)
}

// Waiters behind the head learn what it learns: one waiter asks the nodes, however many there are.
func TestOnlyTheHeadOfTheQueueAsksTheNodes(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	l := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, l, longLease)
	waiters := []<-chan outcome{queueUp(t.Context(), t, l, longLease)}
	waitForListeners(t, servers, name, 1)
	require.Zero(t, callsDuring(t, servers, 0))
	for range 50 {
		waiters = append(waiters, queueUp(t.Context(), t, l, longLease))
	}
	require.LessOrEqual(
		t,
		scriptCalls(t, servers),
		2*len(servers),
		"more than the head, late",
	) // 50 would ask 250 times
	waitForListeners(t, servers, name, 1)
	unlock(t, hold)
	for _, w := range waiters {
		unlock(t, acquired(t, w))
	}
	// An acquisition and a release each, and now and then a round during a release.
	calls := scriptCalls(t, servers)
	t.Logf("%d commands for each of %d waiters", calls/len(waiters), len(waiters))
	require.Less(t, calls, 25*len(waiters))
	waitUntilFree(t, servers...)
}

// What the head learned from its request is outdated once it holds the lock itself.
func TestEndOfAWaitInTheQueueDoesNotNameAnOutdatedHolder(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 1)
	l := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	giveOne(t, servers, name)
	head := queueUp(t.Context(), t, l, longLease)
	waitForListeners(t, servers, name, 1)
	ctx, cancel := context.WithCancel(t.Context())
	waiters := []<-chan outcome{queueUp(ctx, t, l, longLease), queueUp(ctx, t, l, longLease)}
	_, err := l.TryLock(t.Context(), 50*time.Millisecond, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.ErrorContains(t, err, "held by somebody")

	giveBack(t, servers, name)
	hold := acquired(t, head)
	_, err = l.TryLock(t.Context(), 50*time.Millisecond, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotContains(t, err.Error(), "held by somebody")
	cancel()
	for _, w := range waiters {
		require.ErrorIs(t, result(t, w).Err, rlock.ErrNotAcquired)
	}
	unlock(t, hold)
	waitUntilFree(t, servers...)
}
