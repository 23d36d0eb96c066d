package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLeftLockStaysUntilItsLeaseEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{Logger: log.Logger(), Anonymous: true})
	withoutNesting(t, func(t *testing.T, k kind) {
		lock := k.lock(c, k.name)
		hold := take(t, lock, longLease)
		before := calls(s, "evalsha") + calls(s, "eval")
		ctx := hold.Context()
		hold.Leave()
		hold.Leave()
		require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
		require.ErrorIs(t, context.Cause(ctx), rlock.ErrReleased)
		require.False(t, hold.Valid())
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
		require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
		require.Equal(t, before, calls(s, "evalsha")+calls(s, "eval"), "something was sent")
		require.True(t, exists(s, k.name))
		_, err := k.contender(c, k.name).TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
	})
	require.Zero(t, rlock.Sessions(c))
	closeClient(t, c)
	require.Empty(t, log.With(""))
}

// A throttle lets its section run once in each lease.
func TestThrottleLogsNothing(t *testing.T) {
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		for range 3 {
			take(t, b.lock, time.Minute).Leave()
			time.Sleep(time.Hour)
		}
		require.Empty(t, b.called("release.lua"))
		require.Empty(t, b.called("renew.lua"))
		require.Empty(t, log.With(""))
	})
}

func TestLeftLevelLeavesTheOuterLevelHeld(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(c, k.name)
		outer := take(t, lock, rlock.Watchdog)
		takeWith(outer.Context(), t, lock, rlock.Watchdog).Leave()
		require.True(t, outer.Valid())
		unlock(t, outer)
		requireFree(t, s, k.name)
	})
}

func TestLeaveTellsLateLossesApart(t *testing.T) {
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, time.Second)
		time.Sleep(time.Minute)
		require.Len(t, log.With("Leave the hold if the lease is meant to run out"), 1)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		ctx := hold.Context()
		hold.Leave()
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.ErrorIs(t, b.lock.Unlock(ctx), rlock.ErrNotHeld, "the loss is told again")
	})
}
