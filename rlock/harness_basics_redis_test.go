//go:build redis

package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// requireAllBasics requires that clients, made by newRedis, nest, wait, are woken and renewed, with
// every kind of lock. Without renewed the server's clock may stand still.
func requireAllBasics(t *testing.T, newRedis func() rueidis.Client, renewed bool) {
	t.Helper()
	// All locks are taken before their renewals are awaited, by clients that must dial first.
	options := rlock.Options{WatchdogLease: 6 * time.Second}
	if !renewed { // where the clock stands still, precedence never ends
		options.WriterPreference = rlock.PreferNobody
	}
	newClient := func() *rlock.Client { return newClientOn(t, newRedis(), options) }
	mine, theirs, bystander := newClient(), newClient(), newClient()

	var held [][]*rlock.Hold // of each kind, innermost first
	for _, k := range kinds {
		name := t.Name() + " " + k.name
		outer := take(t, k.lock(mine, name), rlock.Watchdog)
		held = append(held,
			[]*rlock.Hold{takeWith(outer.Context(), t, k.lock(mine, name), rlock.Watchdog), outer})
		count, err := k.lock(theirs, name).Info(t.Context())
		require.NoError(t, err, k.name)
		require.Equal(t, 2, count.Count, k.name)
		_, err = k.contender(theirs, name).TryLock(t.Context(), rlock.NoWait, time.Minute)
		require.ErrorIs(t, err, rlock.ErrNotAcquired, k.name)
		requireRefusedAfter(t, 200*time.Millisecond, k.contender(theirs, name))
	}
	if renewed {
		waitForRenewal(t, slices.Concat(held...))
	}
	for _, levels := range held {
		unlock(t, levels[0])
		unlock(t, levels[1])
	}
	for _, k := range contests() {
		requireWoken(t, k, mine, theirs, bystander)
	}
}

// requireWoken requires that a release by one client wakes a waiter of another. The lease outlasts
// the test, so only a message can wake the waiter in time; otherwise it asks after 5 s. The machine
// may be busy, so not every wake-up need be quick.
func requireWoken(t *testing.T, k kind, mine, theirs, bystander *rlock.Client) {
	t.Helper()
	name, quick := t.Name()+" "+k.name, 0
	for try := 0; try < 12 && quick < 2; try++ {
		// It may have to wait while readers have their turn.
		hold := acquired(t, lockInBackground(t.Context(), k.contender(mine, name), time.Minute))
		waiter := lockInBackground(t.Context(), k.lock(theirs, name), time.Minute)
		// By then the waiter listens.
		_, err := k.lock(bystander, name).TryLock(t.Context(), 100*time.Millisecond, time.Minute)
		require.Error(t, err, k.name)
		start := time.Now()
		unlock(t, hold)
		o := result(t, waiter)
		require.NoError(t, o.Err, k.name)
		took := o.At.Sub(start)
		require.Less(t, took, locktest.Missed, "a waiter of the %s lock was not woken", k.name)
		if took < promptly {
			quick++
		}
		unlock(t, o.Hold)
	}
	require.Equal(t, 2, quick, "waiters of the %s lock are not woken", k.name)
}

// wrapped is a rueidis client inside another type, like those of hooks and tracing.
type wrapped struct {
	rueidis.Client
}
