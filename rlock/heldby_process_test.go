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

// heldError returns the error of a try that finds the lock held.
func heldError(t *testing.T, lock *rlock.Lock) *rlock.HeldError {
	t.Helper()
	_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	return held
}

func TestHolderIsOfAnotherProcessOnceItsClientIsClosed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	gone := newClient(t, s, rlock.Options{})
	take(t, gone.NewLock("order"), longLease)
	closeClient(t, gone)
	require.False(t, heldError(t, newClient(t, s, rlock.Options{}).NewLock("order")).SameProcess)
}

// The mistake: a nested Lock with the caller's context instead of the hold's.
func TestLongWaitForAHolderOfThisProcessIsLoggedOnce(t *testing.T) {
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		outer := take(t, b.lock, rlock.Watchdog)
		held := heldFor(30_000)
		b.reply("acquire.lua", func(args []string) any {
			reply := held(args).([]any)
			reply[1] = outer.Owner()
			return reply
		})
		ctx, stop := context.WithTimeout(t.Context(), 29*time.Second)
		defer stop()
		_, err := b.lock.Lock(ctx, longLease)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "pass its hold.Context() down")
		require.Empty(t, log.With(""))

		_, err = b.lock.TryLock(t.Context(), 10*time.Minute, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Len(t, log.With(""), 1)
		line := log.With("waited for longer than Options.WatchdogLease")[0]
		require.Contains(t, line, "pass its hold.Context() down")
		unlock(t, outer)
	})
}
