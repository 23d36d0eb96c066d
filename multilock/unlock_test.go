package multilock_test

import (
	"context"
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
