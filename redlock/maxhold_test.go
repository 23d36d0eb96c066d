package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// A RedLock is bounded by MaxHold, even if its owner nests it again and again. The warnings name the
// caller's line, and the loss says why.
func TestMaxHoldBoundsARedLockAndNestedLevelsDoNotExtendIt(t *testing.T) {
	t.Parallel()
	var log logtest.Lines
	_, clients := startFive(t, rlock.Options{WatchdogLease: 600 * time.Millisecond,
		MaxHold: 2 * time.Second, Debug: true, Logger: log.Logger()})
	l := redlock.NewOn(name, atOnce, clients...)
	hold, err := l.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err)
	eventually(t, func() bool {
		if nested, err := l.Lock(hold.Context(), rlock.Watchdog); err == nil {
			_ = nested.Unlock(t.Context())
		}
		return hold.Err() != nil
	}, "it is nested beyond MaxHold")
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.ErrorContains(t, hold.Err(), "it was held for Options.MaxHold, 2s")
	half := log.With("half of Options.MaxHold")
	require.NotEmpty(t, half)
	require.Contains(t, half[0], "TestMaxHoldBoundsARedLock", "not the caller's stack")
}
