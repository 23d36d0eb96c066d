package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestUnlockByAnotherOwnerIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		hold := take(t, lock, rlock.Watchdog)

		require.ErrorIs(t, lock.Unlock(rlock.WithOwner(t.Context())), rlock.ErrNotHeld)
		require.ErrorIs(t, lock.Unlock(t.Context()), rlock.ErrNotHeld, "no owner at all")
		elsewhere := k.lock(newClient(t, s, rlock.Options{}), k.name)
		require.ErrorIs(t, elsewhere.Unlock(hold.Context()), rlock.ErrNotHeld,
			"the same token of another client")
		require.Equal(t, k.hash(hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		require.True(t, hold.Valid())
	})
}

// Also for the other mode of a read-write lock.
func TestUnlockOfALockOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		hold := take(t, k.lock(client, k.name), rlock.Watchdog)
		for _, other := range kinds {
			if other.name != k.name {
				require.ErrorIs(t, other.lock(client, k.name).Unlock(hold.Context()),
					rlock.ErrNotHeld, other.name)
			}
		}
		require.Equal(t, k.hash(hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		unlock(t, hold)
		requireFree(t, s, k.name)
	})
}

func TestSecondUnlockOfAHoldIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, rlock.Watchdog)
		inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
		unlock(t, inner)
		require.ErrorIs(t, inner.Unlock(t.Context()), rlock.ErrNotHeld)
		require.Equal(t, k.hash(outer.Owner(), 1), s.DoMap(t, "HGETALL", k.name),
			"the second unlock must not cost the outer level")

		unlock(t, outer)
		other := take(t, lock, rlock.Watchdog)
		require.ErrorIs(t, outer.Unlock(t.Context()), rlock.ErrNotHeld)
		require.True(t, other.Valid())
		require.Equal(t, k.hash(other.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
	})
}

func TestOfManyConcurrentUnlocksOneSucceeds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		hold := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), rlock.Watchdog)
		var succeeded, refused atomic.Int32
		var running sync.WaitGroup
		for range 16 {
			running.Go(func() {
				switch err := hold.Unlock(context.Background()); {
				case err == nil:
					succeeded.Add(1)
				case isNotHeld(err):
					refused.Add(1)
				}
			})
		}
		running.Wait()
		require.EqualValues(t, 1, succeeded.Load())
		require.EqualValues(t, 15, refused.Load())
		requireFree(t, s, k.name)
	})
}

func TestUnlockWithoutAHoldReleasesTheInnermostLevel(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		ctx := rlock.WithOwner(t.Context())
		outer := takeWith(ctx, t, lock, rlock.Watchdog)
		inner := takeWith(ctx, t, lock, rlock.Watchdog)

		require.NoError(t, lock.Unlock(ctx))
		require.ErrorIs(t, inner.Err(), rlock.ErrReleased)
		require.NoError(t, outer.Err())
		require.NoError(t, lock.Unlock(ctx))
		require.ErrorIs(t, outer.Err(), rlock.ErrReleased)
		requireFree(t, s, k.name)
		require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
	})
}

// The server forgot the lock, and this client does not know yet.
func TestUnlockOfALockThatIsGoneSaysLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, rlock.Watchdog)
		inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
		s.Do(t, "DEL", k.name)
		require.ErrorIs(t, inner.Unlock(t.Context()), rlock.ErrLost)
		require.ErrorIs(t, outer.Err(), rlock.ErrLost, "the levels are lost together")
		require.ErrorIs(t, outer.Unlock(t.Context()), rlock.ErrLost)
	})
}

func TestUnlockOfALockKnownToBeLostSendsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		hold := take(t, lock, rlock.Watchdog)
		_, err := lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		monitor := s.Monitor(t)
		require.Equal(t, hold.Err(), hold.Unlock(t.Context()))
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.Empty(t, monitor.Commands(t))
	})
}

// Unlocking without a hold does not depend on who noticed a loss first: a loss is no misuse.
func TestUnlockWithoutAHoldOfALockKnownToBeLostSaysSoOnceForEachLevel(t *testing.T) {
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(client, k.name)
		// lose acquires that many levels, and makes the client notice that they are lost.
		lose := func(ctx context.Context, levels int) (holds []*rlock.Hold) {
			for range levels {
				holds = append(holds, takeWith(ctx, t, lock, longLease))
			}
			_, err := lock.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.ErrorIs(t, holds[0].Err(), rlock.ErrLost)
			return holds
		}
		ctx := rlock.WithOwner(t.Context())
		holds := lose(ctx, 2)
		for range holds {
			err := lock.Unlock(ctx)
			require.ErrorIs(t, err, rlock.ErrLost)
			require.Equal(t, holds[0].Err(), err)
		}
		require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
		require.ErrorIs(t, holds[0].Unlock(ctx), rlock.ErrNotHeld, "each level is released once")

		holds = lose(ctx, 3)
		require.ErrorIs(t, holds[2].Unlock(ctx), rlock.ErrLost)
		require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrLost)
		require.ErrorIs(t, holds[1].Unlock(ctx), rlock.ErrNotHeld, "no level counts twice")
		require.ErrorIs(t, holds[0].Unlock(ctx), rlock.ErrLost)
		require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)

		lose(ctx, 2)
		require.ErrorIs(t, lock.Unlock(rlock.WithOwner(t.Context())), rlock.ErrNotHeld,
			"another owner")
		require.ErrorIs(t, k.lock(client, "another").Unlock(ctx), rlock.ErrNotHeld, "another lock")
		takeWith(ctx, t, lock, longLease)
		require.NoError(t, lock.Unlock(ctx), "releases what was acquired since")
		require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
		requireFree(t, s, k.name)
	})
}
