//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// afterReconnecting is how long a waiter may take that must first subscribe again. Without a
// wake-up it would ask after 5 s.
const afterReconnecting = 2 * time.Second

func TestKilledConnectionsDoNotLoseTheWakeUp(t *testing.T) {
	t.Parallel()
	onEveryContest(t, func(t *testing.T, k kind) {
		t.Parallel()
		for _, connections := range []string{"normal", "pubsub"} {
			t.Run(connections, func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				holder, c := newClient(t, s, rlock.Options{}), newClient(t, s, rlock.Options{})
				hold := take(t, k.contender(holder, "order"), longLease)
				waiter := lockInBackground(t.Context(), k.lock(c, "order"), longLease)
				k.waitForListeners(t, s, "order", 1)
				for range 3 {
					s.DoInt(t, "CLIENT", "KILL", "TYPE", connections, "SKIPME", "yes")
					k.waitForListeners(t, s, "order", 1)
				}
				require.Empty(t, waiter)
				released := time.Now()
				unlock(t, hold)
				next := acquired(t, waiter)
				require.Less(t, time.Since(released), afterReconnecting)
				unlock(t, next)
			})
		}
	})
}

func TestUnlockWhileTheSubscriptionIsDownWakesTheWaiterAfterwards(t *testing.T) {
	onEveryContest(t, func(t *testing.T, k kind) {
		s := redistest.Start(t)
		holder := newClient(t, s, rlock.Options{})
		c, p := proxied(t, s, rlock.Options{})
		hold := take(t, k.contender(holder, "order"), longLease)
		waiter := k.parked(t, s, k.lock(c, "order"))

		p.Refuse()
		require.Positive(t, s.DoInt(t, "CLIENT", "KILL", "TYPE", "pubsub"))
		k.waitForListeners(t, s, "order", 0)
		unlock(t, hold)
		require.Empty(t, waiter)
		require.NoError(t, p.Accept())
		accepting := time.Now()
		next := acquired(t, waiter)
		require.Less(t, time.Since(accepting), afterReconnecting)
		unlock(t, next)
	})
}

func TestHoldSurvivesAKilledConnection(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		s := redistest.Start(t)
		// A busy machine may stand still for two seconds, and the next renewal must dial first.
		c := newClient(t, s, rlock.Options{WatchdogLease: 6 * time.Second})
		hold := take(t, k.lock(c, "order"), rlock.Watchdog)
		for range 3 {
			s.DoInt(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			before := hold.Deadline()
			eventually(t, func() bool { return hold.Deadline().After(before) || hold.Err() != nil },
				"not renewed")
			require.NoError(t, hold.Err())
		}
		unlock(t, hold)
		requireFree(t, s, "order")
	})
}
