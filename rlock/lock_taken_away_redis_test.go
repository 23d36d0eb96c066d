//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

func TestForceUnlockEndsTheHoldOfAnotherClientAtItsNextRenewal(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		t.Parallel()
		holder := newClient(t, s, rlock.Options{WatchdogLease: watchedLease})
		other := newClient(t, s, rlock.Options{})
		hold := take(t, k.lock(holder, k.name), rlock.Watchdog)
		start := time.Now()
		forced, err := k.lock(other, k.name).ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
		lostTo(t, hold, watchdog.ErrGone)
		require.Less(t, time.Since(start), watchedLease*5/6,
			"a renewal comes every third of a lease")
		requireFree(t, s, k.name)
	})
}

// watchedLease is short enough to wait for a renewal, and long enough not to mistake its end for
// one.
const watchedLease = 9 * time.Second

func TestDeletedKeyEndsTheHoldAtTheNextRenewal(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		lock := k.lock(newClient(t, s, rlock.Options{WatchdogLease: watchedLease}), k.name)
		hold := take(t, lock, rlock.Watchdog)
		inner := takeWith(hold.Context(), t, lock, rlock.Watchdog)
		start := time.Now()
		require.EqualValues(t, 1, s.DoInt(t, "DEL", k.name))
		lostTo(t, hold, watchdog.ErrGone)
		require.Less(t, time.Since(start), watchedLease*5/6,
			"a renewal comes every third of a lease")
		lostTo(t, inner, watchdog.ErrGone)
		require.Zero(t, s.DoInt(t, "EXISTS", k.name))
	})
}
