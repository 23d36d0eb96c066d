//go:build redis

package rlock_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestServerOutOfMemoryStillRenewsAndReleases(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: lease})
	other := newClient(t, s, rlock.Options{})
	outer, inner := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
	for _, k := range contests() {
		outer[k.name] = take(t, k.contender(c, k.name), rlock.Watchdog)
		inner[k.name] = takeWith(outer[k.name].Context(), t, k.contender(c, k.name), rlock.Watchdog)
	}
	end := befall(t, s, "is out of memory")

	requireKept(t, slices.Collect(maps.Values(outer)), 2*lease, "not renewed")
	onEveryContest(t, func(t *testing.T, k kind) {
		unlock(t, inner[k.name])
		require.True(t, outer[k.name].Valid())
		end() // because a full server may refuse the subscription
		// otherwise a late one would have to ask
		waiter := lockInBackground(t.Context(), k.lock(other, k.name), longLease)
		k.waitForListeners(t, s, k.name, 1)
		if k.grants {
			eventually(t, func() bool {
				return s.DoInt(t, "ZCARD",
					"holdfast_lock_waiters:{"+k.name+"}") == 1
			}, "not registered")
		}
		end = befall(t, s, "is out of memory")
		unlock(t, outer[k.name])
		if k.grants { // handing the lock over takes no memory
			hold := acquired(t, waiter)
			require.True(t, hold.Valid())
			require.Equal(t, k.hash(hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
			unlock(t, hold)
			requireFree(t, s, k.name)
			return
		}
		// The waiter learns that the lock is free, but refused.
		requireRefusal(t, result(t, waiter).Err, "OOM")
		waitUntilFree(t, s, k.name)
	})
}
