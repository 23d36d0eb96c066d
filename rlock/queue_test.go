package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// line is a lock that somebody holds, with waiters in line behind each other.
type line struct {
	server  *redistest.Server
	lock    *rlock.Lock
	hold    *rlock.Hold
	monitor *redistest.Monitor
	waiters []<-chan outcome
	leave   []context.CancelFunc
}

// newLine returns a line in which all waiters have come to rest: the head listens and has looked for the second time.
func newLine(t *testing.T, waiters int) *line {
	t.Helper()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	unlock(t, take(t, lock, rlock.Watchdog)) // so that the server knows the scripts
	q := &line{server: s, lock: lock, hold: take(t, lock, 30*time.Second), monitor: s.Monitor(t)}
	for i := range waiters {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		q.leave = append(q.leave, cancel)
		q.waiters = append(q.waiters, lockInBackground(ctx, lock, 30*time.Second))
		eventually(t, func() bool { return rlock.Waiting(lock) == i+1 }, "the waiter is in line")
	}
	require.Equal(t, []string{"evalsha", "subscribe", "evalsha"}, verbs(awaitCommands(t, q.monitor, 3)))
	return q
}

func TestOnlyTheHeadOfTheLineAsksRedis(t *testing.T) {
	t.Parallel()
	q := newLine(t, 20) // which requires it
	require.Empty(t, q.monitor.Commands(t))
	awaitListeners(t, q.server, "lock", 1)
}

func TestContendedAcquisitionCostsTwoCommands(t *testing.T) {
	t.Parallel()
	const waiters = 20
	q := newLine(t, waiters)
	unlock(t, q.hold)
	for _, waiter := range q.waiters {
		unlock(t, acquired(t, waiter))
	}
	seen := verbs(q.monitor.Commands(t))
	require.Len(t, seen, 1+2*waiters)
	for _, verb := range seen {
		require.Equal(t, "evalsha", verb)
	}
}

func TestWaitersOfOneProcessAreServedInOrder(t *testing.T) {
	t.Parallel()
	q := newLine(t, 10)
	unlock(t, q.hold)
	for i, waiter := range q.waiters {
		hold := acquired(t, waiter)
		for _, later := range q.waiters[i+1:] {
			require.Empty(t, later)
		}
		unlock(t, hold)
	}
}

func TestHeadThatLeavesPromotesTheNext(t *testing.T) {
	t.Parallel()
	q := newLine(t, 3)
	q.leave[0]()
	require.ErrorIs(t, result(t, q.waiters[0]).err, context.Canceled)
	// The next one looks at once: a wake-up may have come for the head while it left.
	require.Equal(t, []string{"evalsha"}, verbs(awaitCommands(t, q.monitor, 1)))
	unlock(t, q.hold)
	unlock(t, acquired(t, q.waiters[1]))
	unlock(t, acquired(t, q.waiters[2]))
}

func TestWaiterThatLeavesFromTheMiddleCostsNothing(t *testing.T) {
	t.Parallel()
	q := newLine(t, 3)
	q.leave[1]()
	err := result(t, q.waiters[1]).err
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.Empty(t, q.monitor.Commands(t))
	unlock(t, q.hold)
	unlock(t, acquired(t, q.waiters[0]))
	unlock(t, acquired(t, q.waiters[2]))
}

func TestNothingIsSubscribedSoonAfterTheLastWaiterLeft(t *testing.T) {
	t.Parallel()
	q := newLine(t, 3)
	for _, leave := range q.leave {
		leave()
	}
	for _, waiter := range q.waiters {
		require.ErrorIs(t, result(t, waiter).err, context.Canceled)
	}
	awaitListeners(t, q.server, "lock", 0)
	require.Zero(t, rlock.Waiting(q.lock))
}
