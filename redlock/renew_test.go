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

func TestExplicitLeaseDoesNotJoinNodes(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	takenAway(t, servers[0])
	lock := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, lock, longLease)
	eventually(t, func() bool { return lock.Asked(hold) == 0 }, "all have answered")
	servers[0].Do(t, "DEL", name)
	// The same watchdogs renew another lock.
	renewed := take(t, redlock.NewOn("another", atOnce, clients...), rlock.Watchdog)
	before := renewed.Deadline()
	eventually(t, func() bool { return renewed.Deadline().After(before.Add(lease / 2)) },
		"the watchdogs work")
	require.Equal(t, 4, count(servers))
	unlock(t, renewed)
	unlock(t, hold)
}

// A node that hangs delays only its own part, and its renewals do not pile up.
func TestRenewalsGoOnWhileTwoNodesHangThatStayIfTheyAreBackInTime(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	lock := redlock.NewOn(name, hasty, clients...)
	hold := acquired(t, lockInBackground(t.Context(), lock, rlock.Watchdog))
	waitUntilHeld(t, servers)
	for _, s := range servers[:2] {
		s.Pause(t)
	}
	for range 3 {
		before := hold.Deadline()
		eventually(t,
			func() bool { return hold.Err() != nil || hold.Deadline().After(before.Add(lease/2)) },
			"it is renewed")
		require.True(t, hold.Valid(), "%v", hold.Err())
	}
	eventually(t, func() bool { return lock.Parts(hold) == 3 }, "they have not renewed for a lease")
	require.True(t, hold.Valid(), "%v", hold.Err())
	for _, s := range servers[:2] {
		s.Resume(t)
	}
	eventually(t, func() bool { return lock.Parts(hold) == 5 }, "they join again")
	unlock(t, hold)
	waitUntilFree(t, servers...)
}

// The nodes' parts are lost and joined again and again, in turn and as fast as possible, while
// another client tries to acquire the lock and the owner nests. If a third node's lease ran out in
// a pause of the machine, there could be two holders: nobody tells the hold of the key deleted.
func TestHoldWhosePartsAreLostAndRejoinedAlwaysHasAQuorum(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	lock := redlock.NewOn(name, atOnce, clients...)
	other := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	hold := take(t, lock, rlock.Watchdog)
	for end := time.Now().Add(2 * lease); time.Now().Before(end) && hold.Err() == nil; {
		eventually(
			t,
			func() bool { return hold.Err() != nil || lock.Parts(hold) == 5 && count(servers) == 5 },
			"all join",
		)
		for i, at := range []int{time.Now().Nanosecond() % 5, time.Now().Nanosecond() / 7 % 5} {
			if i == 0 {
				servers[at].Do(t, "DEL", name)
			} else {
				_, err := clients[at].NewLock(name).ForceUnlock(t.Context())
				require.NoError(t, err)
			}
		}
		if another, err := other.TryLock(t.Context(), rlock.NoWait, lease); err == nil {
			require.False(t, hold.Valid(), "two holders at the same time")
			unlock(t, another)
		}
		if nested, err := lock.TryLock(hold.Context(), longWait, rlock.Watchdog); err == nil {
			unlock(t, nested)
		}
	}
	// A machine that stands still for long may cost it a renewal on a third node.
	if err := hold.Unlock(t.Context()); err != nil {
		require.ErrorIs(t, err, rlock.ErrLost)
	}
	waitUntilFree(t, servers...)
}
