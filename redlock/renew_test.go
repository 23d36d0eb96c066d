//go:build redis

package redlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestHoldSurvivesThreeNodesThatRestartEmptyOneByOne(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	lock := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, lock, rlock.Watchdog)
	waitUntilHeld(t, servers)
	for _, s := range servers[1:4] {
		s.Kill(t)
		before := hold.Deadline()
		eventually(t, func() bool { return hold.Err() != nil || hold.Deadline().After(before) },
			"it is renewed without the node")
		s.Restart(t)
		eventually(t, func() bool {
			return hold.Err() != nil ||
				lock.Parts(hold) == len(servers) && count(servers) == len(servers)
		}, "the node joins again")
		require.True(t, hold.Valid(), "%v", hold.Err())
	}
	// None of the original nodes is needed any more.
	for i := range 2 {
		_, err := clients[4*i].NewLock(name).ForceUnlock(t.Context())
		require.NoError(t, err)
	}
	require.True(t, hold.Valid())
	unlock(t, hold)
	waitUntilFree(t, servers...)
}

func TestNodeThatMissedTheAcquisitionJoinsAtARenewalUnderANewName(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	for _, s := range servers[:2] {
		takenAway(t, s)
	}
	lock := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, lock, rlock.Watchdog)
	eventually(t, func() bool { return lock.Parts(hold) == 3 && lock.Asked(hold) == 0 },
		"it is held by three, and the others have said no")
	for _, s := range servers[:2] {
		s.Do(t, "DEL", name)
	}
	eventually(t, func() bool { return lock.Parts(hold) == 5 }, "the others join")
	owners := ownersOf(t, servers, name)
	require.Equal(t, []string{hold.Owner()}, slices.Compact(owners[2:]))
	require.NotContains(t, owners[:2], hold.Owner(),
		"that name may have been given up on these nodes")
	// Nodes that joined are renewed as well.
	before := hold.Deadline()
	for _, i := range []int{2, 3} {
		takenAway(t, servers[i])
	}
	eventually(t,
		func() bool { return hold.Err() != nil || hold.Deadline().After(before.Add(lease)) },
		"it is renewed")
	require.True(t, hold.Valid(), "%v", hold.Err())
	unlock(t, hold)
	waitUntilFree(t, servers[0], servers[1], servers[4])
}
