package multilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// One script acquires the parts, and gives all of them the same lease.
func TestNestedMultiLocksDoNotExtendMaxHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 600 * time.Millisecond, MaxHold: 2 * time.Second})
	l := multilock.NewOn(c, "a", "b")
	hold := take(t, l, rlock.Watchdog)
	eventually(t, func() bool {
		if nested, err := l.TryLock(hold.Context(), rlock.NoWait, rlock.Watchdog); err == nil {
			_ = nested.Unlock(t.Context())
		}
		return hold.Err() != nil
	}, "it is nested beyond MaxHold")
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.ErrorContains(t, hold.Err(), "it was held for Options.MaxHold, 2s")
}
