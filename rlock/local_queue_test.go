package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// localQueue is a lock whose contender is held, with a queue of waiters.
type localQueue struct {
	kind    kind
	server  *redistest.Server
	lock    *rlock.Lock
	hold    *rlock.Hold
	monitor *redistest.Monitor
	waiters []<-chan outcome
	leave   []context.CancelFunc
}

// inLine runs a test with such a queue for each kind that has one: waiters of a fair lock are
// queued in Redis. All waiters have come to rest: the head listens and has asked twice.
func inLine(t *testing.T, waiters int, test func(*testing.T, *localQueue)) {
	t.Helper()
	for _, k := range contests() {
		if !k.lonely {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				test(t, newLocalQueue(t, k, waiters))
			})
		}
	}
}

func newLocalQueue(t *testing.T, k kind, waiters int) *localQueue {
	t.Helper()
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	lock, contender := k.lock(client, k.name), k.contender(client, k.name)
	unlock(t, take(t, lock, rlock.Watchdog)) // loads the scripts
	unlock(t, take(t, contender, rlock.Watchdog))
	q := &localQueue{kind: k, server: s, lock: lock, hold: take(t, contender, 30*time.Second),
		monitor: s.Monitor(t)}
	for i := range waiters {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		q.leave = append(q.leave, cancel)
		q.waiters = append(q.waiters, lockInBackground(ctx, lock, 30*time.Second))
		eventually(t, func() bool { return rlock.Waiting(lock) == i+1 }, "the waiter is in line")
	}
	require.Equal(t, []string{"evalsha", "subscribe", "evalsha"},
		verbs(waitForCommands(t, q.monitor, 3)))
	// otherwise it would undo the request, too
	eventually(t, func() bool { return rlock.Refusals(lock) == 2 }, "the head has its reply")
	return q
}

func TestOnlyTheHeadOfTheQueueAsksRedis(t *testing.T) {
	t.Parallel()
	inLine(t, 20, func(t *testing.T, q *localQueue) { // newLocalQueue requires it
		require.Empty(t, q.monitor.Commands(t))
		q.kind.waitForListeners(t, q.server, q.kind.name, 1)
	})
}

// The release that hands the lock to the next in the queue is the only command. Readers get it at
// the same time, and ask for it.
func TestContendedAcquisitionInOneProcessCostsOneCommand(t *testing.T) {
	t.Parallel()
	const waiters = 20
	inLine(t, waiters, func(t *testing.T, q *localQueue) {
		start := time.Now()
		unlock(t, q.hold)
		for _, waiter := range q.waiters {
			unlock(t, acquired(t, waiter))
		}
		took := time.Since(start)
		seen := verbs(q.monitor.Commands(t))
		for _, verb := range seen {
			require.Equal(t, "evalsha", verb)
		}
		switch {
		// no waiters are registered elsewhere; after a second and four hand-overs it is announced
		case q.kind.grants:
			require.GreaterOrEqual(t, len(seen), 1+waiters)
			require.LessOrEqual(t, len(seen), 1+waiters+int(took/time.Second))
		case q.kind.handsOver:
			// Whether others wait elsewhere is unknown, so after 16 hand-overs or 100 ms the next
			// one must ask. After readers it must ask, too.
			asked := len(seen) - (1 + waiters)
			if q.kind.mode != q.kind.contenderMode {
				asked--
			}
			require.GreaterOrEqual(t, asked, 1)
			require.LessOrEqual(t, asked, 1+int(took/(100*time.Millisecond)))
		default:
			require.Len(t, seen, 1+2*waiters)
		}
	})
}

func TestWaitersOfOneProcessAreServedInOrder(t *testing.T) {
	t.Parallel()
	inLine(t, 10, func(t *testing.T, q *localQueue) {
		unlock(t, q.hold)
		for i, waiter := range q.waiters {
			hold := acquired(t, waiter)
			for _, later := range q.waiters[i+1:] {
				require.True(t, q.kind.shared || len(later) == 0, "two hold it")
			}
			unlock(t, hold)
		}
	})
}

func TestHeadThatLeavesPromotesTheNext(t *testing.T) {
	t.Parallel()
	inLine(t, 3, func(t *testing.T, q *localQueue) {
		q.leave[0]()
		require.ErrorIs(t, result(t, q.waiters[0]).Err, context.Canceled)
		// The next one asks at once: a wake-up may have come for the head while it left. The head
		// removes its registration. A writer that waits also withdraws, which wakes readers.
		expected := 1
		if q.kind.grants {
			expected = 2
		}
		commands := waitForCommands(t, q.monitor, expected)
		require.True(t, q.kind.withdraws || len(commands) == expected, "%v", commands)
		unlock(t, q.hold)
		unlock(t, acquired(t, q.waiters[1]))
		unlock(t, acquired(t, q.waiters[2]))
	})
}

func TestWaiterThatLeavesFromTheMiddleCostsNothing(t *testing.T) {
	t.Parallel()
	inLine(t, 3, func(t *testing.T, q *localQueue) {
		q.leave[1]()
		err := result(t, q.waiters[1]).Err
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Empty(t, q.monitor.Commands(t))
		unlock(t, q.hold)
		unlock(t, acquired(t, q.waiters[0]))
		unlock(t, acquired(t, q.waiters[2]))
	})
}
