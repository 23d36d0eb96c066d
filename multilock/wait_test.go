package multilock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
)

func TestReleaseOfAPartWakesTheWaiterForAll(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			for _, l := range []*rlock.Lock{locks[0], locks[1]} {
				theirs := take(t, l, longLease)
				waiter := lockInBackground(t.Context(), of(locks), longLease)
				waitForListener(t, p.first, l.Name())
				start := time.Now()
				unlock(t, theirs)
				hold := acquired(t, waiter)
				require.Less(t, time.Since(start), 3*time.Second, "woken by a release, not a timer")
				// The release of the MultiLock wakes others, too.
				waiter = lockInBackground(t.Context(), l, longLease)
				waitForListener(t, p.first, l.Name())
				start = time.Now()
				unlock(t, hold)
				unlock(t, acquired(t, waiter))
				require.Less(t, time.Since(start), 3*time.Second, "woken by a release, not a timer")
			}
			requireFree(t, p.first, p.second)
		})
	}
}

// requireNotHad requires the error of a caller that was refused, or left before the reply came.
func requireNotHad(t *testing.T, err error) {
	t.Helper()
	require.True(t, errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, rlock.ErrOutcomeUnknown),
		err)
	require.NotErrorIs(t, err, rlock.ErrLost)
}

func TestCloseOfTheClientOfAPartThatIsHeldEndsTheWaitForAnother(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	mine, another := p.clients(t, rlock.Options{})
	theirs := take(t, p.another.NewLock("b"), longLease)
	waiter := lockInBackground(t.Context(),
		multilock.New(mine.NewLock("a"), another.NewLock("b")), longLease)
	waitForListener(t, p.second, "b")
	closeClient(t, mine)
	o := result(t, waiter)
	require.ErrorIs(t, o.Err, rlock.ErrClosed)
	require.ErrorContains(t, o.Err, "while another part was waited for")
	require.ErrorContains(t, o.Err, `lock "a"`)
	unlock(t, theirs)
	waitUntilFree(t, p.first, p.second) // b may be granted to the waiter, which gives it back
}

// While one call of an owner waits for a lock, others of the same owner cannot ask for it.
func TestWaitIsNotExceededWhileAnotherCallOfTheOwnerWaitsForAPart(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	theirs := take(t, p.client.NewLock("b"), longLease)
	ctx, cancel := context.WithCancel(rlock.WithOwner(t.Context()))
	defer cancel()
	alone := lockInBackground(ctx, p.client.NewLock("b"), longLease)
	waitForListener(t, p.first, "b")
	within(t, 200*time.Millisecond+promptly, func() {
		_, err := of(shapes(p)["batch"]).TryLock(ctx, 200*time.Millisecond, longLease)
		requireNotHad(t, err)
	})
	cancel()
	require.ErrorIs(t, result(t, alone).Err, context.Canceled)
	unlock(t, theirs)
	waitUntilFree(t, p.first) // b may be granted to the waiter, which gives it back
}
