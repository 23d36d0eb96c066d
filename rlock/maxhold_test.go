package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/rlock"
)

func TestMaxHoldBoundsTheWatchdog(t *testing.T) {
	var log logtest.Lines
	options := rlock.Options{WatchdogLease: 30 * time.Second, MaxHold: 10 * time.Minute,
		Logger: log.Logger()}
	inBubble(t, options, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, rlock.Watchdog)
		time.Sleep(5*time.Minute - time.Second)
		require.Empty(t, log.With(""))
		time.Sleep(15 * time.Second)
		half := log.With("half of Options.MaxHold")
		require.Len(t, half, 1)
		require.Contains(t, half[0], "TestMaxHoldBoundsTheWatchdog", "not the holder's stack")
		<-hold.Done()
		held := time.Since(b.start)
		require.Greater(t, held, 9*time.Minute+30*time.Second)
		require.LessOrEqual(t, held, 10*time.Minute)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.ErrorIs(t, hold.Err(), rlock.ErrExpired)
		require.ErrorContains(t, hold.Err(), "it was held for Options.MaxHold, 10m0s")
		require.Len(t, log.With("half of Options.MaxHold"), 1)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
		unlock(t, take(t, b.lock, rlock.Watchdog))
	})
}

func TestMaxHoldDoesNotConcernExplicitLeases(t *testing.T) {
	options := rlock.Options{WatchdogLease: 30 * time.Second, MaxHold: time.Minute}
	inBubble(t, options, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, time.Hour)
		time.Sleep(50 * time.Minute)
		require.True(t, hold.Valid())
		unlock(t, hold)
	})
}

func TestNestedLevelsDoNotExtendMaxHold(t *testing.T) {
	options := rlock.Options{WatchdogLease: 30 * time.Second, MaxHold: 10 * time.Minute}
	inBubble(t, options, func(t *testing.T, b *bubble) {
		hold := take(t, b.lock, rlock.Watchdog)
		for hold.Err() == nil && time.Since(b.start) < time.Hour {
			if nested, err := b.lock.Lock(hold.Context(), rlock.Watchdog); err == nil {
				_ = nested.Unlock(t.Context())
			}
			time.Sleep(7 * time.Second)
		}
		require.LessOrEqual(t, time.Since(b.start), 10*time.Minute+7*time.Second)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	})
}
