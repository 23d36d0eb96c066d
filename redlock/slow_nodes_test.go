//go:build redis

package redlock_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// takeAgain acquires a lock that was just released on a quorum of its nodes. If slow nodes were
// among those, a release that is still on its way to a fast one may be in the way.
func takeAgain(t testing.TB, l *redlock.Lock) *rlock.Hold {
	t.Helper()
	hold, err := l.TryLock(t.Context(), longWait, longLease)
	require.NoError(t, err)
	return hold
}

// median returns the median time of a lock and unlock.
func median(t testing.TB, l *redlock.Lock) time.Duration {
	t.Helper()
	const times = 31
	var took []time.Duration
	for range times {
		start := time.Now()
		unlock(t, takeAgain(t, l))
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[times/2]
}

func TestSlowMinorityDoesNotSlowTheLockDown(t *testing.T) {
	// A round that waited for them would take the NodeTimeout at least.
	const slowness = time.Second
	for _, o := range []struct {
		name    string
		options redlock.Options
	}{
		{"that answers in time", redlock.Options{FsyncAlways: true, NodeTimeout: 10 * slowness}},
		{"that answers too late", redlock.Options{FsyncAlways: true, NodeTimeout: slowness / 2}},
	} {
		t.Run(o.name, func(t *testing.T) {
			servers := startNodes(t, 5)
			clients, proxies := proxied(t, servers, rlock.Options{})
			warm(t, clients)
			l := redlock.NewOn(name, o.options, clients...)
			fast := median(t, l)
			for _, p := range proxies[3:] {
				p.Delay(slowness / 2) // each way
			}
			slow := median(t, l)
			t.Logf("median of lock and unlock: %v, and %v with two slow nodes", fast, slow)
			require.Less(t, slow, 3*fast+slowness/10)
			require.Less(t, slow, slowness/2)
			waitUntilFree(t, servers...)
		})
	}
}

func TestSlowNodeIsHeldAsSoonAsItRepliesAndNotWaitedForAtTheEnd(t *testing.T) {
	servers := startNodes(t, 5)
	clients, proxies := proxied(t, servers, rlock.Options{})
	warm(t, clients)
	slowDown(proxies[3:])
	bestOf(t, slowness/2, func() time.Duration {
		hold := take(t, redlock.NewOn("slow", atOnce, clients...), longLease)
		eventually(t, func() bool { return len(keysOf(t, servers...)) == 5 },
			"the slow nodes hold it too")
		for _, owner := range ownersOf(t, servers, "slow") {
			require.Equal(t, hold.Owner(), owner)
		}
		waitForReplies(t, clients) // the late replies have come by now
		start := time.Now()
		unlock(t, hold)
		took := time.Since(start)
		waitUntilFree(t, servers...)
		return took
	})
}

func TestLockReleasedBeforeASlowNodeRepliesIsReleasedThereToo(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients, proxies := proxied(t, servers, rlock.Options{})
	warm(t, clients)
	l := redlock.NewOn(name, atOnce, clients...)
	monitor := servers[4].Monitor(t)
	slowDown(proxies[3:])
	for range 10 {
		unlock(t, takeAgain(t, l))
	}
	// After the last reply nothing may be on its way any more.
	waitForReplies(t, clients)
	waitUntilFree(t, servers...)
	acquired := make(map[string]bool)
	for _, c := range monitor.Commands(t) {
		acquired[c[0]] = acquired[c[0]] || slices.Contains(c, name)
	}
	require.True(t, acquired["evalsha"], "the slow node was asked for this lock")
}

func TestSlowMajorityIsAnErrorIfItsTimeIsTooShort(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients, proxies := proxied(t, servers, rlock.Options{})
	warm(t, clients)
	slowDown(proxies[2:])
	brief := redlock.Options{FsyncAlways: true, NodeTimeout: 5 * time.Millisecond}
	for i := range 5 {
		// Each attempt has its own name, or what the last one has not released yet would be in the
		// way.
		lock := redlock.NewOn(name+strconv.Itoa(i), brief, clients...)
		_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		// The first time they are asked; later they are known to be slow.
		require.Regexp(
			t,
			`c.*: (no reply in time \(see redlock.Options.NodeTimeout\)|it has not replied for \d+ms)`,
			err.Error(),
		)
	}
	waitForReplies(t, clients)
	waitUntilFree(t, servers...)

	unlock(t, take(t, redlock.NewOn(name, atOnce, clients...), longLease))
	waitUntilFree(t, servers...)
}

func TestLockIsAcquiredFromASlowMajorityWhileWaiting(t *testing.T) {
	t.Parallel()
	// Each round fails, until the nodes are fast again.
	servers := startNodes(t, 5)
	clients, proxies := proxied(t, servers, rlock.Options{})
	warm(t, clients)
	const slowness = time.Second
	for _, p := range proxies[2:] {
		p.Delay(slowness / 2) // each way
	}
	options := redlock.Options{FsyncAlways: true, NodeTimeout: slowness / 10}
	done := lockInBackground(t.Context(), redlock.NewOn(name, options, clients...), longLease)
	select {
	case o := <-done:
		require.FailNow(t, "acquired from nodes that reply too late", "%v", o.Err)
	case <-time.After(4 * slowness):
	}
	for _, p := range proxies {
		p.Delay(0)
	}
	hold := acquired(t, done)
	require.True(t, hold.Valid())
	unlock(t, hold)
	waitForReplies(t, clients)
	waitUntilFree(t, servers...)
}
