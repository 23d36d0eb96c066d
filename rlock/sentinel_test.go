//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// failOver kills the master and returns the new one. The replica has all that the master had.
func failOver(t *testing.T, group *redistest.Sentinel) *redistest.Server {
	t.Helper()
	master, replica := group.Nodes[0], group.Nodes[1]
	eventually(t, func() bool {
		theirs, err := master.Call("DBSIZE")
		ours, failed := replica.Call("DBSIZE")
		return err == nil && failed == nil && theirs == ours
	}, "the replica lags")
	master.Kill(t)
	require.Same(t, replica, group.WaitForFailover(t, master))
	return replica
}

func TestLocksSurviveAFailover(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t)
	holder := newClientOn(t, group.Client(t), rlock.Options{WatchdogLease: 2 * time.Minute})
	waiting := newClientOn(t, group.Client(t), rlock.Options{})
	renewed, explicit := make(map[string]*rlock.Hold), make(map[string]*rlock.Hold)
	waiters := make(map[string]<-chan outcome)
	for _, k := range kinds {
		renewed[k.name] = take(t, k.lock(holder, "renewed "+k.name), rlock.Watchdog)
	}
	for _, k := range contests() {
		explicit[k.name] = take(t, k.contender(holder, k.name), time.Minute)
		waiters[k.name] = lockInBackground(t.Context(), k.lock(waiting, k.name), time.Minute)
		k.waitForListeners(t, group.Nodes[0], k.name, 1)
	}

	master := failOver(t, group)
	for _, k := range kinds {
		require.True(t, renewed[k.name].Valid(), k.name)
		require.Equal(t, k.hash(renewed[k.name].Owner(), 1),
			master.DoMap(t, "HGETALL", "renewed "+k.name))
		contender := k.contender(waiting, "renewed "+k.name)
		_, err := contender.TryLock(t.Context(), 200*time.Millisecond, time.Minute)
		require.Error(t, err, "%s: taken from its holder", k.name)
	}

	// The waiters have moved to the new master, where the releases are announced.
	for _, k := range contests() {
		k.waitForListeners(t, master, k.name, 1)
		start := time.Now()
		unlock(t, explicit[k.name])
		unlock(t, acquired(t, waiters[k.name]))
		require.Less(t, time.Since(start), 3*time.Second, "%s: not woken", k.name)
	}
	for _, hold := range renewed {
		unlock(t, hold)
	}
	// Waiters that gave up are unregistered in the background: they may be granted a lock
	// meanwhile, and release it.
	eventually(t, func() bool {
		keys, ok := left(master)
		return ok && len(keys) == 0
	}, "a key is left")
}
