package rlock_test

import (
	"context"
	"strconv"
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

func TestHeldErrorKnowsThatTheHolderIsOfThisProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{Debug: true})
	other := newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)

	own := heldError(t, c.NewLock("order"))
	require.True(t, own.SameProcess)
	require.True(t, own.SameClient)
	require.Equal(t, "reentrant", own.HolderKind)
	require.Regexp(t, `\.go:\d+$`, own.AcquiredAt)
	require.Regexp(t, `^not acquired: held by this very process \(`+hold.Owner()+
		`, acquired at .*\.go:\d+\) for another \S+; `+
		`if by your caller, pass its hold\.Context\(\) down$`, own.Error())

	kind := heldError(t, c.NewFairLock("order"))
	require.Equal(t, "reentrant", kind.HolderKind)
	require.ErrorContains(t, kind, "as a reentrant lock, not a fair one")
	require.ErrorContains(t, kind, "use one kind of lock for one name")

	client := heldError(t, other.NewLock("order"))
	require.True(t, client.SameProcess)
	require.False(t, client.SameClient)
	require.ErrorContains(t, client, "through another client")
	require.ErrorContains(t, client, "use its client, and pass its hold.Context() down")
	unlock(t, hold)

	hold = take(t, other.NewLock("order"), longLease)
	require.ErrorContains(t, heldError(t, other.NewLock("order")), "set Options.Debug to see where")
	unlock(t, hold)

	plant(t, s, "order", map[string]string{"another process:1": "1"})
	stranger := heldError(t, c.NewLock("order"))
	require.False(t, stranger.SameProcess)
	require.Empty(t, stranger.HolderKind)
	require.NotContains(t, stranger.Error(), "hold.Context()")
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

func TestLongWaitForChangingHoldersIsNotLogged(t *testing.T) {
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		held, n := heldFor(30_000), 0
		b.reply("acquire.lua", func(args []string) any {
			reply := held(args).([]any)
			n++
			reply[1] = b.client.ID() + ":" + strconv.Itoa(n/4)
			return reply
		})
		_, err := b.lock.TryLock(t.Context(), 10*time.Minute, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Empty(t, log.With(""))
	})
}
