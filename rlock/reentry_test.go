package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLockIsReenteredThreeDeepAndFreeAfterThreeUnlocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, rlock.Watchdog)
		middle := takeWith(outer.Context(), t, lock, rlock.Watchdog)
		inner := takeWith(middle.Context(), t, lock, rlock.Watchdog)
		require.Equal(t, outer.Owner(), inner.Owner())

		require.Equal(t, k.hash(outer.Owner(), 3), s.DoMap(t, "HGETALL", k.name))
		unlock(t, inner)
		require.Equal(t, "2", k.levels(t, s, k.name, outer.Owner()))
		unlock(t, middle)
		require.Equal(t, "1", k.levels(t, s, k.name, outer.Owner()))
		require.True(t, outer.Valid())
		unlock(t, outer)
		requireFree(t, s, k.name)
	})
}

func TestLevelsAreReleasedInAnyOrder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, rlock.Watchdog)
		middle := takeWith(outer.Context(), t, lock, rlock.Watchdog)
		inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)

		unlock(t, outer)
		require.ErrorIs(t, outer.Err(), rlock.ErrReleased)
		require.True(t, middle.Valid())
		require.Equal(t, k.hash(inner.Owner(), 2), s.DoMap(t, "HGETALL", k.name))
		unlock(t, inner)
		require.True(t, middle.Valid())
		require.Equal(t, k.hash(inner.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		unlock(t, middle)
		requireFree(t, s, k.name)
	})
}

func TestWaitingLockReentersAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		ctx := rlock.WithOwner(t.Context())
		takeWith(ctx, t, lock, rlock.Watchdog)
		inner := acquired(t, lockInBackground(ctx, lock, rlock.Watchdog))
		require.Equal(t, k.hash(inner.Owner(), 2), s.DoMap(t, "HGETALL", k.name))
	})
}

// Other waiters come first in the queue of a fair lock, and readers step back for a writer that
// waits; but an owner that already holds the lock does not wait.
func TestWaitingLockReentersAtOnceWhileOthersWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		lock := k.lock(client, k.name)
		elsewhere := k.contender(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, rlock.Watchdog)
		other := k.parked(t, s, elsewhere)
		inner := acquired(t, lockInBackground(outer.Context(), lock, rlock.Watchdog))
		require.Equal(t, "2", k.levels(t, s, k.name, outer.Owner()))
		unlock(t, inner)
		require.Empty(t, other)
		unlock(t, outer)
		unlock(t, acquired(t, other))
	})
}

func TestOneOwnerHoldsTwoLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		first := take(t, k.lock(client, "first "+k.name), rlock.Watchdog)
		second := takeWith(first.Context(), t, k.lock(client, "second "+k.name), rlock.Watchdog)
		unlock(t, first)
		requireFree(t, s, "first "+k.name)
		require.Equal(t, k.hash(second.Owner(), 1), s.DoMap(t, "HGETALL", "second "+k.name))
	})
}

// A section inside one that was lost would look protected without being so.
func TestLostLockIsNotReentered(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, rlock.Watchdog)
		s.Do(t, "DEL", k.name)

		_, err := lock.TryLock(outer.Context(), rlock.NoWait, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrLost)
		require.ErrorIs(t, outer.Err(), rlock.ErrLost)
		require.False(t, outer.Valid())
		require.Zero(t, s.DoInt(t, "EXISTS", k.name))
	})
}

func TestContextOfALevelDoesNotEndBeforeItsHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, end := range map[string]struct {
		hold   func(t *testing.T, c *rlock.Client, outer *rlock.Hold)
		reason error
	}{
		"lost": {func(t *testing.T, _ *rlock.Client, outer *rlock.Hold) {
			s.Do(t, "DEL", outer.Name())
			require.ErrorIs(t, outer.Extend(t.Context(), time.Minute), rlock.ErrLost)
		}, rlock.ErrLost},
		"released by Close": {func(t *testing.T, c *rlock.Client, _ *rlock.Hold) {
			closeClient(t, c)
		}, rlock.ErrReleased},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryKind(t, func(t *testing.T, k kind) {
				client := newClient(t, s, rlock.Options{ReleaseOnClose: true})
				outer := take(t, k.lock(client, k.name), rlock.Watchdog)
				inner := takeWith(outer.Context(), t, k.lock(client, k.name), rlock.Watchdog)
				ctx := inner.Context()
				ended := make(chan error, 1)
				hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(inner, func(error) {
					ended <- ctx.Err()
				})
				end.hold(t, client, outer)
				require.NoError(t, receive(t, ended, "the inner level has not ended"))
				receive(t, ctx.Done(), "the context of the inner level has not ended")
				require.ErrorIs(t, context.Cause(ctx), end.reason)
			})
		})
	}
}

// Work under the inner level learns of a loss first, and may release the outer level before that
// has ended as well.
func TestLevelReleasedWhileALossIsReportedIsLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, rlock.Watchdog)
		inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
		telling, told := make(chan struct{}), make(chan struct{})
		hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(inner, func(error) { close(telling); <-told })
		forced := make(chan error, 1)
		go func() {
			_, err := lock.ForceUnlock(t.Context())
			forced <- err
		}()
		receive(t, telling, "the loss is not told")
		err := outer.Unlock(t.Context())
		ended := outer.Err()
		close(told)
		require.NoError(t, receive(t, forced, "ForceUnlock hangs"))
		require.ErrorIs(t, err, rlock.ErrLost)
		require.ErrorIs(t, ended, rlock.ErrLost)
		require.ErrorIs(t, context.Cause(outer.Context()), rlock.ErrLost)
	})
}

func TestNestedShorterLeaseDoesNotShortenTheTTL(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, time.Minute)
		deadline := outer.Deadline()
		inner := takeWith(outer.Context(), t, lock, time.Second)
		require.Greater(t, k.lasts(t, s, k.name, outer.Owner()), int64(50_000))
		require.Equal(t, deadline, outer.Deadline())
		require.Equal(t, deadline, inner.Deadline(), "the owner has one lease")
	})
}

func TestNestedLongerLeaseExtendsTheTTL(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, 5*time.Second)
		takeWith(outer.Context(), t, lock, time.Minute)
		require.Greater(t, k.lasts(t, s, k.name, outer.Owner()), int64(50_000))
		require.LessOrEqual(t, k.lasts(t, s, k.name, outer.Owner()), int64(60_000),
			"the longer one, not their sum")
		require.Greater(t, time.Until(outer.Deadline()), 50*time.Second)
	})
}

// Whichever level is released, the longer lease stays.
func TestPartialUnlockDoesNotShortenTheTTL(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		for _, leases := range [][]time.Duration{
			{5 * time.Second, time.Minute}, {time.Minute, 5 * time.Second},
		} {
			outer := take(t, lock, leases[0])
			inner := takeWith(outer.Context(), t, lock, leases[1])
			unlock(t, inner)
			require.Greater(t, k.lasts(t, s, k.name, outer.Owner()), int64(50_000))
			require.Greater(t, time.Until(outer.Deadline()), 50*time.Second)
			unlock(t, outer)
			requireFree(t, s, k.name)
		}
	})
}
