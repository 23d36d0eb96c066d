//go:build redis

package redlock_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// crashCase is the crash case of the Redlock description. The first client holds the lock on a, b
// and c, and cannot reach d and e. Then c restarts, and has forgotten everything. A second client
// finds d, e and c free.
type crashCase struct {
	servers       []*redistest.Server
	first, second *redlock.Lock
	hold          *rlock.Hold // the first client's
}

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

func startCrashCase(
	t testing.TB, o redlock.Options, clientOptions rlock.Options, lease time.Duration,
) *crashCase {
	t.Helper()
	servers := startNodes(t, 5)
	clients, proxies := proxied(t, servers, clientOptions)
	c := &crashCase{servers: servers, first: redlock.NewOn(name, o, clients...),
		second: redlock.NewOn(name, o, newClients(t, servers, clientOptions)...)}
	warm(t, clients)
	for _, p := range proxies[3:] {
		p.Refuse()
		p.Reset()
	}
	if !o.FsyncAlways {
		counted(t, servers, o.MaxLease)
	}
	c.hold = take(t, c.first, lease)
	require.Equal(t, 3, count(servers))
	servers[2].Restart(t)
	require.Equal(t, 2, count(servers))
	return c
}

// Without this one the next test would prove nothing.
func TestRestartOfANodeThatForgetsGivesTheLockToTwoIfFsyncAlwaysIsStatedFalsely(t *testing.T) {
	t.Parallel()
	c := startCrashCase(t, atOnce, rlock.Options{}, longLease)
	second, err := c.second.TryLock(t.Context(), longWait, longLease)
	require.NoError(t, err)
	require.True(t, second.Valid())
	require.True(t, c.hold.Valid(), "the first holder does not know")
	require.True(t, second.Valid(), "both hold it at the same time")
}

func TestRestartOfANodeThatForgetsDoesNotGiveTheLockToTwo(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	o := redlock.Options{MaxLease: lease, NodeTimeout: 3 * time.Second}
	c := startCrashCase(t, o, rlock.Options{WatchdogLease: lease}, lease)
	quorum, delayed := new(redlock.QuorumError), new(redlock.DelayedError)
	var err error
	eventually(t, func() bool {
		_, err = c.second.TryLock(t.Context(), rlock.NoWait, lease)
		require.ErrorAs(t, err, &quorum)
		return errors.As(err, &delayed) // the first time its connection may be broken
	}, "the node says that it has restarted")
	require.LessOrEqual(t, quorum.Granted, 2) // whether d and e have replied does not matter
	require.Equal(t, "c", quorum.Nodes[2].Server)
	require.ErrorAs(t, quorum.Nodes[2].Err, &delayed)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.Positive(t, delayed.For)
	require.LessOrEqual(t, delayed.For, lease+time.Second)
	require.False(t, delayed.Emptied)
	require.ErrorContains(t, err, "c: not counted for another ")

	second := acquired(t, lockInBackground(t.Context(), c.second, lease))
	require.False(t, time.Now().Before(c.hold.Deadline()))
	require.False(t, c.hold.Valid())
	require.True(t, second.Valid())
	unlock(t, second)
	require.ErrorIs(t, c.hold.Unlock(t.Context()), rlock.ErrLost)
}

func TestRestartedNodeThatRemembersRenewsAndReleasesAlthoughItIsNotCounted(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	servers := startNodes(t, 5, redistest.WithAppendOnly())
	o := redlock.Options{MaxLease: lease, NodeTimeout: 3 * time.Second}
	lock := redlock.NewOn(name, o, newClients(t, servers, rlock.Options{WatchdogLease: lease})...)
	counted(t, servers, lease)
	hold := take(t, lock, rlock.Watchdog)
	waitUntilHeld(t, servers)
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
	_, err := lock.TryLock(t.Context(), rlock.NoWait, lease)
	require.Error(t, err)
	unlock(t, hold)
	waitUntilFree(t, servers[0], servers[1], servers[4])
}

func TestNewNodesAreNotCountedAndALeaseBeyondMaxLeaseIsRefused(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{WatchdogLease: 10 * time.Minute})
	lock := redlock.NewOn(name, redlock.Options{NodeTimeout: 3 * time.Second}, clients...)
	_, err := lock.TryLock(t.Context(), rlock.NoWait, time.Second)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	quorum := new(redlock.QuorumError)
	require.ErrorAs(t, err, &quorum)
	for _, node := range quorum.Nodes {
		delayed := new(redlock.DelayedError)
		if !errors.As(node.Err, &delayed) {
			continue // its reply did not matter any more
		}
		require.Greater(t, delayed.For, 9*time.Minute)
		require.False(t, delayed.Emptied)
		require.ErrorContains(t, delayed, "was started less than MaxLease ago")
	}
	delayed := new(redlock.DelayedError)
	require.ErrorAs(t, err, &delayed)

	_, err = lock.TryLock(t.Context(), rlock.NoWait, 10*time.Minute+time.Millisecond)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	require.ErrorContains(t, err, "MaxLease")
	_, err = lock.WithOptions(redlock.Options{MaxLease: time.Minute}).
		TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	require.ErrorIs(t, err, rlock.ErrInvalid, "the watchdog's lease is longer, too")
	hold := take(t, lock.WithOptions(atOnce), 5*time.Minute)
	require.NoError(t, hold.Extend(t.Context(), time.Hour), "with FsyncAlways it means nothing")
	unlock(t, hold)
	waitUntilFree(t, servers...)
}

func TestExtendBeyondMaxLeaseIsRefused(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	counted(t, servers, lease)
	hold := take(t, redlock.NewOn(name, redlock.Options{NodeTimeout: 3 * time.Second}, clients...),
		rlock.Watchdog)
	require.ErrorIs(t, hold.Extend(t.Context(), lease+time.Millisecond), rlock.ErrInvalid)
	require.NoError(t, hold.Extend(t.Context(), lease))
	unlock(t, hold)
}

func TestNodesThatWereEmptiedGiveTheLockToTwoUnlessTheyKeepAnEpoch(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	servers := startNodes(t, 5)
	counted(t, servers, lease)
	for _, epoch := range []bool{false, true} {
		o := redlock.Options{MaxLease: lease, NodeTimeout: 3 * time.Second, Epoch: epoch}
		first := redlock.NewOn(
			name,
			o,
			newClients(t, servers, rlock.Options{WatchdogLease: lease})...)
		second := redlock.NewOn(
			name,
			o,
			newClients(t, servers, rlock.Options{WatchdogLease: lease})...)
		if epoch {
			_, err := first.TryLock(t.Context(), rlock.NoWait, lease)
			delayed := new(redlock.DelayedError)
			require.ErrorAs(t, err, &delayed, "it is the first contact")
			require.True(t, delayed.Emptied)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
		}
		hold := acquired(t, lockInBackground(t.Context(), first, lease))
		eventually(t, func() bool { return first.Asked(hold) == 0 }, "all have answered")
		for _, s := range servers[:3] {
			s.Do(t, "FLUSHALL")
		}
		another, err := second.TryLock(t.Context(), rlock.NoWait, lease)
		stillValid := hold.Valid()
		if !epoch {
			require.NoError(t, err)
			require.True(t, stillValid && another.Valid(), "otherwise this proves nothing")
			unlock(t, another)
			require.Error(t, hold.Unlock(t.Context()))
			continue
		}
		require.Error(t, err)
		require.ErrorContains(t, err, "it is new, or was emptied")
		another = acquired(t, lockInBackground(t.Context(), second, lease))
		require.False(t, hold.Valid())
		unlock(t, another)
	}
}
