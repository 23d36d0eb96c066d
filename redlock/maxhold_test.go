package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/rlock"
)

// MaxHold bounds a RedLock even if its owner nests it again and again. The warnings name the
// caller's line, and the loss says why.
func TestMaxHoldBoundsARedLockAndNestedLevelsDoNotExtendIt(t *testing.T) {
	var log logtest.Lines
	of := rlock.Options{MaxHold: 10 * time.Minute, Debug: true, Logger: log.Logger()}
	inBubbleOf(t, of, atOnce, func(t *testing.T, b *bubble) {
		hold, err := b.lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
		require.NoError(t, err)
		for hold.Err() == nil && time.Since(b.start) < time.Hour {
			if nested, err := b.lock.Lock(hold.Context(), rlock.Watchdog); err == nil {
				_ = nested.Unlock(t.Context())
			}
			time.Sleep(7 * time.Second)
		}
		require.LessOrEqual(t, time.Since(b.start), 10*time.Minute+7*time.Second)
		require.Greater(t, time.Since(b.start), 9*time.Minute)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.ErrorContains(t, hold.Err(), "it was held for Options.MaxHold, 10m0s")
		half := log.With("half of Options.MaxHold")
		require.NotEmpty(t, half)
		require.Contains(t, half[0], "TestMaxHoldBoundsARedLock", "not the caller's stack")
	})
}
