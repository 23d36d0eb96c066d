package multilock_test

import (
	"context"
	"errors"
	"slices"
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

func TestContextThatEndsEndsTheWaitAndLeavesNothing(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			theirs := take(t, locks[1], longLease)
			why := errors.New("the caller went home")
			for _, lock := range []func(context.Context) (*rlock.Hold, error){
				func(ctx context.Context) (*rlock.Hold, error) { return of(locks).Lock(ctx, longLease) },
				func(ctx context.Context) (*rlock.Hold, error) {
					return of(locks).TryLock(ctx, time.Minute, rlock.Watchdog)
				},
			} {
				ctx, cancel := context.WithCancelCause(t.Context())
				waiter := inBackground(func() (*rlock.Hold, error) { return lock(ctx) })
				waitForWaiter(t, p.first)
				cancel(why)
				o := result(t, waiter)
				require.ErrorIs(t, o.Err, context.Canceled)
				require.ErrorIs(t, o.Err, why)
				requireNotHad(t, o.Err)
				// A command in flight when the context ended is undone in the background.
				eventually(t, func() bool { return slices.Equal([]string{"b"}, left(t, p.first)) },
					"only b is held")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := of(locks).Lock(ctx, longLease)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			requireNotHad(t, err)
			unlock(t, theirs)
			// A grant may come before Redis knows that the waiter has left.
			waitUntilFree(t, p.first, p.second)
		})
	}
}

func TestContextThatHasEndedSendsNothing(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, locks := range shapes(p) {
		first, second := p.first.Monitor(t), p.second.Monitor(t)
		_, err := of(locks).Lock(ctx, longLease)
		require.ErrorIs(t, err, context.Canceled, name)
		_, err = of(locks).TryLock(ctx, time.Minute, rlock.Watchdog)
		require.ErrorIs(t, err, context.Canceled, name)
		require.Empty(t, first.Commands(t), name)
		require.Empty(t, second.Commands(t), name)
	}
}

// requireNotHad requires the error of a caller that was refused, or left before the reply came.
func requireNotHad(t *testing.T, err error) {
	t.Helper()
	require.True(t, errors.Is(err, rlock.ErrNotAcquired) || errors.Is(err, rlock.ErrOutcomeUnknown),
		err)
	require.NotErrorIs(t, err, rlock.ErrLost)
}

func TestCloseEndsTheWaitWithErrClosed(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			mine, another := p.clients(t, rlock.Options{})
			locks := shapes(&pair{client: mine, another: another})[name]
			theirs := take(t, p.client.NewFencedLock("b"), longLease)
			waiter := lockInBackground(t.Context(), of(locks), longLease)
			waitForWaiter(t, p.first)
			closeClient(t, mine)
			o := result(t, waiter)
			require.ErrorIs(t, o.Err, rlock.ErrClosed)
			require.NotErrorIs(t, o.Err, rlock.ErrLost)
			_, err := of(locks).TryLock(t.Context(), rlock.NoWait, longLease)
			require.ErrorIs(t, err, rlock.ErrClosed)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			unlock(t, theirs)
			requireFree(t, p.first, p.second)
		})
	}
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

// Close releases the part that is held already. That must not look like a release by the caller.
func TestCloseThatReleasesEndsTheWait(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	mine, _ := p.clients(t, rlock.Options{ReleaseOnClose: true})
	theirs := take(t, p.client.NewLock("b"), longLease)
	waiter := lockInBackground(t.Context(),
		multilock.New(mine.NewLock("a"), mine.NewLock("b")), longLease)
	waitForWaiter(t, p.first)
	closeClient(t, mine)
	o := result(t, waiter)
	require.True(t, errors.Is(o.Err, rlock.ErrClosed) || errors.Is(o.Err, rlock.ErrLost), o.Err)
	require.NotErrorIs(t, o.Err, rlock.ErrReleased)
	unlock(t, theirs)
	requireFree(t, p.first)
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
