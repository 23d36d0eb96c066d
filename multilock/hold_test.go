//go:build !race

package multilock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
	"holdfast/watchdog"
)

func TestHoldEndsWhenAPartIsLostAndSaysWhich(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		for _, force := range []bool{true, false} {
			hold := take(t, of(locks), rlock.Watchdog)
			ctx, part, reason := hold.Context(), locks[1], watchdog.ErrGone.Error()
			if force {
				part, reason = locks[0], "force-unlocked"
				_, err := part.ForceUnlock(t.Context())
				require.NoError(t, err)
			} else {
				p.first.Do(t, "DEL", "b")
			}
			<-hold.Done()
			requireLost(t, hold.Err(), part.Name(), reason)
			require.ErrorContains(t, hold.Err(), `"a+b+c": lost`)
			var lost *rlock.LostError
			require.ErrorAs(t, hold.Err(), &lost)
			require.Equal(t, "a+b+c", lost.Lock)
			require.ErrorAs(t, lost.Reason, &lost)
			require.Equal(t, part.Name(), lost.Lock)
			require.Equal(t, hold.Err(), context.Cause(ctx))
			require.False(t, hold.Valid())
			require.ErrorIs(t, hold.Extend(t.Context(), longLease), rlock.ErrLost)

			// The other parts stay held: nobody else may see work that is half done.
			require.Len(t, left(t, p.first, p.second), 2)
			requireLost(t, hold.Unlock(), part.Name(), reason)
			require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
			p.requireFree(t)
		}
	})
}

// A part that Close releases does not count as one released by another call.
func TestHoldEndsWithoutALossWhenAClientOfItsPartsIsClosed(t *testing.T) {
	t.Parallel()
	inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
		for _, releases := range []bool{false, true} {
			mine, another := p.clients(t, rlock.Options{ReleaseOnClose: releases})
			hold := take(t, multilock.New(mine.NewLock("a"), mine.NewFairLock("b"),
				another.NewLock("c")), rlock.Watchdog)
			ctx := hold.Context()
			closeClient(t, mine)
			want := map[bool]error{false: rlock.ErrClosed, true: rlock.ErrReleased}[releases]
			require.Equal(t, want, hold.Err())
			require.Equal(t, want, context.Cause(ctx))
			require.Error(t, hold.Extend(t.Context(), longLease))
			require.NotErrorIs(t, hold.Unlock(), rlock.ErrLost)
			p.requireFree(t)
		}
	})
}

func TestLocksOfTheSamePartsInAnyOrderAreTheSameLock(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		outer := take(t, of(locks), longLease)
		inner := takeWith(outer.Context(), t, of(locks), longLease)
		same := multilock.New(locks[2], multilock.New(locks[1], locks[0]), locks[2])
		require.ErrorIs(t, of(locks[:2]).Unlock(outer.Context()), rlock.ErrNotHeld)
		require.NoError(t, same.Unlock(outer.Context()))
		require.Equal(t, rlock.ErrReleased, inner.Err())
		require.True(t, outer.Valid())
		require.Equal(t, "1", levels(t, p.first, "a"))
		require.NoError(t, same.Unlock(outer.Context()))
		p.requireFree(t)
	})
}

// Unlock releases the inner level, whatever is wrong with it.
func TestUnlockByOwnerOfALevelThatLostAPartReleasesNoOtherLevel(t *testing.T) {
	t.Parallel()
	inShapes(t, func(t *testing.T, p *pair, locks []*rlock.Lock) {
		outer := take(t, of(locks), longLease)
		inner := takeWith(outer.Context(), t, of(locks), longLease)
		require.NoError(t, locks[1].Unlock(outer.Context()))
		for _, err := range []error{
			inner.Err(), context.Cause(inner.Context()), of(locks).Unlock(outer.Context()),
		} {
			requireLost(t, err, "b", "released separately")
			require.NotErrorIs(t, err, rlock.ErrNotHeld)
		}
		require.ErrorIs(t, inner.Unlock(), rlock.ErrNotHeld)
		require.True(t, outer.Valid())
		require.Equal(t, "1", levels(t, p.first, "a"))
		require.Equal(t, "1", levels(t, p.first, "b"))
		unlock(t, outer)
		p.requireFree(t)
	})
}

// All parts are released, whatever becomes of some. One limit of time is for all.
func TestReleaseGoesOnPastFailuresAndReportsAll(t *testing.T) {
	t.Parallel()
	const limit = 3 * time.Second
	inPair(t, rlock.Options{CommandTimeout: limit}, func(t *testing.T, p *pair) {
		a, b := p.client.NewLock("a"), p.client.NewLock("b")
		lock := multilock.New(a, b, p.client.NewFairLock("e"), p.another.NewLock("c"),
			p.another.NewFairLock("d"))
		hold := take(t, lock, longLease)
		synctest.Wait()
		p.second.Kill(t)
		p.first.Do(t, "DEL", "a")
		start := time.Now()
		err := hold.Unlock()
		require.LessOrEqual(t, time.Since(start), limit+time.Second)
		require.ErrorIs(t, err, rlock.ErrLost)
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		for _, name := range []string{"a", "c", "d"} {
			require.ErrorContains(t, err, `lock "`+name+`"`)
		}
		for _, name := range []string{"b", "e"} {
			require.NotContains(t, err.Error(), `lock "`+name+`"`)
		}
		require.Empty(t, left(t, p.first))
	})
}
