package multilock_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
)

func TestUnlockByOwnerReleasesTheInnermostLevel(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			lock := of(locks)
			outer := take(t, lock, longLease)
			inner := takeWith(outer.Context(), t, lock, longLease)
			// Another MultiLock of the same parts, in any order, is the same lock.
			same := multilock.New(locks[2], multilock.New(locks[1], locks[0]), locks[2])
			require.NoError(t, same.Unlock(outer.Context()))
			require.Equal(t, rlock.ErrReleased, inner.Err())
			require.True(t, outer.Valid())
			require.Equal(t, []string{"1"}, levels(t, p.first, "a"))
			require.ErrorIs(t, inner.Unlock(t.Context()), rlock.ErrNotHeld)
			ctx := outer.Context()
			require.NoError(t, lock.Unlock(ctx), "ctx may have ended")
			requireFree(t, p.first, p.second)
			err := lock.Unlock(ctx)
			require.ErrorIs(t, err, rlock.ErrNotHeld)
			require.ErrorContains(t, err, `multilock "a+b+c"`)
		})
	}
}

func TestUnlockOfALockThatCanNeverBeLockedReleasesNothing(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	locks := shapes(p)["one by one"]
	hold := take(t, of(locks), longLease)
	err := multilock.New(locks[0], nil, locks[1], locks[2]).Unlock(hold.Context())
	require.ErrorIs(t, err, rlock.ErrNotHeld)
	require.True(t, hold.Valid())
	unlock(t, hold)
	requireFree(t, p.first, p.second)
}

func TestUnlockByAnotherOwnerReturnsErrNotHeld(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	locks := shapes(p)["one by one"]
	hold := take(t, of(locks), longLease)
	for name, c := range map[string]struct {
		lock *multilock.Lock
		err  error
	}{
		"no owner":      {of(locks), of(locks).Unlock(t.Context())},
		"another owner": {of(locks), of(locks).Unlock(rlock.WithOwner(t.Context()))},
		"fewer parts":   {of(locks[:2]), of(locks[:2]).Unlock(hold.Context())},
	} {
		require.ErrorIs(t, c.err, rlock.ErrNotHeld, name)
		require.ErrorContains(t, c.err, c.lock.Name(), name)
	}
	require.ErrorContains(t, of(locks).Unlock(t.Context()),
		"pass the hold's context or one of rlock.WithOwner")
	require.True(t, hold.Valid())
	unlock(t, hold)
	requireFree(t, p.first, p.second)
}

// Unlock releases the inner level, whatever is wrong with it.
func TestUnlockByOwnerOfALevelThatLostAPartReleasesNoOtherLevel(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			outer := take(t, of(locks), longLease)
			inner := takeWith(outer.Context(), t, of(locks), longLease)
			require.NoError(t, locks[1].Unlock(outer.Context()))
			require.True(t, outer.Valid())
			for _, err := range []error{
				inner.Err(), context.Cause(inner.Context()), of(locks).Unlock(outer.Context()),
			} {
				require.ErrorIs(t, err, rlock.ErrLost, "one of its parts was released")
				require.NotErrorIs(t, err, rlock.ErrReleased)
				require.NotErrorIs(t, err, rlock.ErrNotHeld)
				require.ErrorContains(t, err, `lock "b" lost: it was released meanwhile`)
			}
			require.ErrorIs(t, inner.Unlock(t.Context()), rlock.ErrNotHeld)
			require.True(t, outer.Valid())
			for _, name := range []string{"a", "b"} {
				require.Equal(t, []string{"1"}, levels(t, p.first, name))
			}
			unlock(t, outer)
			requireFree(t, p.first, p.second)
		})
	}
}

// A part that Close releases does not count as one released by another call.
func TestPartsReleasedByCloseAreNotLost(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	mine, another := p.clients(t, rlock.Options{ReleaseOnClose: true})
	hold := take(t, multilock.New(mine.NewLock("a"), mine.NewFairLock("b"), another.NewLock("c")),
		longLease)
	closeClient(t, mine)
	receive(t, hold.Done(), "the hold goes on")
	require.NotErrorIs(t, hold.Err(), rlock.ErrLost)
	require.NotErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	requireFree(t, p.first, p.second)
}

// Unlocking without a hold does not depend on who noticed a loss first: a loss is no misuse.
func TestUnlockByOwnerOfALockKnownToBeLostSaysSoOnceForEachLevel(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			ctx := rlock.WithOwner(t.Context())
			lose := func(parts []*rlock.Lock) (holds []*rlock.Hold) {
				for range 3 {
					holds = append(holds, takeWith(ctx, t, of(locks), longLease))
				}
				for _, part := range parts {
					forceUnlock(t, part)
				}
				require.ErrorIs(t, holds[0].Err(), rlock.ErrLost)
				return holds
			}
			for _, parts := range [][]*rlock.Lock{locks[:1], locks} { // one part, or all of them
				holds := lose(parts)
				require.ErrorIs(t, of(locks).Unlock(ctx), rlock.ErrLost)
				require.ErrorIs(t, holds[2].Unlock(ctx), rlock.ErrNotHeld, "no level counts twice")
				require.ErrorIs(t, holds[1].Unlock(ctx), rlock.ErrLost)
				require.ErrorIs(t, of(locks).Unlock(ctx), rlock.ErrLost)
				require.ErrorIs(t, of(locks).Unlock(ctx), rlock.ErrNotHeld)
				requireFree(t, p.first, p.second)
			}
			lose(locks)
			takeWith(ctx, t, of(locks), longLease)
			require.NoError(t, of(locks).Unlock(ctx), "releases what was acquired since")
			require.ErrorIs(t, of(locks).Unlock(ctx), rlock.ErrNotHeld)
			requireFree(t, p.first, p.second)
		})
	}
}

func TestManyCallsReleaseEachLevelOnce(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			lock := of(locks)
			ctx := rlock.WithOwner(t.Context())
			const deep = 5
			holds := make([]*rlock.Hold, deep)
			for i := range holds {
				holds[i] = takeWith(ctx, t, lock, longLease)
			}
			var calls sync.WaitGroup
			errs := make(chan error, 4*deep)
			for i := range 2 * deep {
				calls.Go(func() { errs <- lock.Unlock(ctx) })
				calls.Go(func() { errs <- holds[i%deep].Unlock(ctx) })
			}
			calls.Wait()
			close(errs)
			released := 0
			for err := range errs {
				if err == nil {
					released++
					continue
				}
				require.ErrorIs(t, err, rlock.ErrNotHeld)
			}
			require.Equal(t, deep, released)
			requireFree(t, p.first, p.second)
		})
	}
}
