//go:build redis

package redlock_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// counted waits until nodes are counted for leases of at most delay: they must run that long and a
// second.
func counted(t testing.TB, servers []*redistest.Server, delay time.Duration) {
	t.Helper()
	for i, s := range servers {
		eventually(t, func() bool { return uptime(t, s) >= delay+time.Second },
			called(i)+" runs for long enough")
	}
}

// uptime returns for how long the server has run, according to itself.
func uptime(t testing.TB, s *redistest.Server) time.Duration {
	t.Helper()
	_, rest, found := strings.Cut(s.DoString(t, "INFO", "server"), "uptime_in_seconds:")
	require.True(t, found)
	text, _, _ := strings.Cut(rest, "\r")
	seconds, err := strconv.Atoi(text)
	require.NoError(t, err)
	return time.Duration(seconds) * time.Second
}

// This is the crash case of the Redlock description. The first client holds the lock on a, b and c,
// and cannot reach d and e. Then c restarts, and has forgotten everything. A second client finds d,
// e and c free.
func TestRestartOfANodeThatForgetsGivesTheLockToTwoIfFsyncAlwaysIsStatedFalsely(t *testing.T) {
	t.Parallel()
	servers := redistest.StartAll(t, 5)
	clients, proxies := proxied(t, servers, rlock.Options{})
	others := newClients(t, servers, rlock.Options{})
	for _, p := range proxies[3:] {
		p.Refuse()
		p.Reset()
	}
	first := take(t, redlock.NewOn(name, atOnce, clients...), longLease)
	require.Equal(t, 3, count(servers))
	servers[2].Restart(t)
	require.Equal(t, 2, count(servers))
	second := acquired(t,
		lockInBackground(t.Context(), redlock.NewOn(name, atOnce, others...), longLease))
	require.True(t, first.Valid() && second.Valid(), "both hold it at the same time")
}

func TestRestartedNodeThatRemembersRenewsAndReleasesAlthoughItIsNotCounted(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	servers := redistest.StartAll(t, 5, redistest.WithAppendOnly())
	o := redlock.Options{MaxLease: lease, NodeTimeout: 3 * time.Second}
	lock := redlock.NewOn(name, o, newClients(t, servers, rlock.Options{WatchdogLease: lease})...)
	counted(t, servers, lease)
	hold := takeOnAll(t, lock, servers, rlock.Watchdog)
	for _, s := range servers[:2] {
		s.Restart(t)
	}
	// With two nodes gone for good, the restarted ones decide.
	for _, s := range servers[2:4] {
		s.Kill(t)
	}
	before := hold.Deadline()
	eventually(t,
		func() bool { return hold.Err() != nil || hold.Deadline().After(before.Add(lease)) },
		"it is renewed")
	require.NoError(t, hold.Err())
	_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(lease))
	require.Error(t, err)
	unlock(t, hold)
	waitUntilFree(t, servers[0], servers[1], servers[4])
}

func TestNewNodesAreNotCountedAndNoWaitThatIsShorterIsWaited(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	servers := redistest.StartAll(t, 3)
	clients := newClients(t, servers, rlock.Options{WatchdogLease: lease})
	lock := redlock.NewOn(name, redlock.Options{NodeTimeout: 3 * time.Second}, clients...)
	start := time.Now()
	_, err := lock.TryLock(t.Context(), lease/2, rlock.Lease(time.Second))
	require.Less(t, time.Since(start), lease/4)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	delayed := new(redlock.DelayedError)
	require.ErrorAs(t, err, &delayed)
	require.Greater(t, delayed.For, lease*3/4)
	require.LessOrEqual(t, delayed.For, lease+time.Second)
	require.False(t, delayed.Emptied)
	require.ErrorContains(t, err, "does not count for another")
	require.ErrorContains(t, err, "the node started less than MaxLease ago")
	waitUntilFree(t, servers...)

	hold := take(t, lock.WithOptions(atOnce), rlock.Watchdog)
	require.NoError(
		t,
		hold.Extend(t.Context(), rlock.Lease(time.Hour)),
		"with FsyncAlways it means nothing",
	)
	unlock(t, hold)
	waitUntilFree(t, servers...)
	lock = lock.WithOptions(redlock.Options{MaxLease: time.Second, NodeTimeout: 3 * time.Second})
	hold = acquired(t, lockInBackground(t.Context(), lock, rlock.Lease(time.Second)))
	require.ErrorIs(t, hold.Extend(t.Context(), rlock.Lease(1001*time.Millisecond)), rlock.ErrInvalid)
	_ = hold.Unlock() // ErrLost if the machine is slow
}

func TestNodesThatWereEmptiedGiveTheLockToTwoUnlessTheyKeepAnEpoch(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	servers := redistest.StartAll(t, 5)
	counted(t, servers, lease)
	for _, epoch := range []bool{false, true} {
		o := redlock.Options{MaxLease: lease, NodeTimeout: 3 * time.Second, Epoch: epoch}
		one := func() *redlock.Lock {
			clients := newClients(t, servers, rlock.Options{WatchdogLease: lease})
			return redlock.NewOn(name, o, clients...)
		}
		first, second := one(), one()
		if epoch {
			_, err := first.TryLock(t.Context(), rlock.NoWait, rlock.Lease(lease))
			delayed := new(redlock.DelayedError)
			require.ErrorAs(t, err, &delayed, "it is the first contact")
			require.True(t, delayed.Emptied)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
		}
		hold := acquired(t, lockInBackground(t.Context(), first, rlock.Lease(lease)))
		eventually(t, func() bool {
			if hold.Err() != nil { // a node was late, and does not join during the lease
				hold = acquired(t, lockInBackground(t.Context(), first, rlock.Lease(lease)))
			}
			return first.Parts(hold) == 5
		}, "it is held by all")
		for _, s := range servers[:3] {
			s.Do(t, "FLUSHALL")
		}
		another, err := second.TryLock(t.Context(), rlock.NoWait, rlock.Lease(lease))
		stillValid := hold.Valid()
		if !epoch {
			require.NoError(t, err)
			require.True(t, stillValid && another.Valid(), "otherwise this proves nothing")
			unlock(t, another)
			require.Error(t, hold.Unlock())
			continue
		}
		require.Error(t, err)
		require.ErrorContains(t, err, "the node is new or was emptied")
		another = acquired(t, lockInBackground(t.Context(), second, rlock.Lease(lease)))
		require.False(t, hold.Valid())
		unlock(t, another)
	}
}
