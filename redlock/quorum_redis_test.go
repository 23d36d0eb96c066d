//go:build redis

package redlock_test

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

var deaths = []death{
	{
		name: "hanging",
		die:  func(t testing.TB, s *redistest.Server, _ *faultproxy.Proxy) { s.Pause(t) },
		back: func(t testing.TB, s *redistest.Server, _ *faultproxy.Proxy) { s.Resume(t) },
	},
	{
		name: "killed",
		die:  func(t testing.TB, s *redistest.Server, _ *faultproxy.Proxy) { s.Kill(t) },
		back: func(t testing.TB, s *redistest.Server, _ *faultproxy.Proxy) { s.Restart(t) },
	},
	{
		name: "black-holed",
		die:  func(_ testing.TB, _ *redistest.Server, p *faultproxy.Proxy) { p.BlackHole() },
		back: func(_ testing.TB, _ *redistest.Server, p *faultproxy.Proxy) { p.Pass() },
	},
}

// quorumOptions give a node a time that the table below can wait for again and again, and that a
// busy machine seldom needs.
var quorumOptions = redlock.Options{FsyncAlways: true, NodeTimeout: 400 * time.Millisecond}

func TestLockIsAcquiredIffThreeOfFiveNodesAreAlive(t *testing.T) {
	t.Parallel()
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 5)
			clients, proxies := proxied(t, servers, rlock.Options{}, redistest.OneConnection)
			warm(t, clients)
			for set := range 1 << len(servers) {
				dead := func(i int) bool { return set>>i&1 == 1 }
				for i, s := range servers {
					if dead(i) {
						d.die(t, s, proxies[i])
					}
				}
				if bits.OnesCount(uint(set)) <= 2 {
					requireQuorum(t, clients, set)
				} else {
					requireNoQuorum(t, clients, set)
				}
				for i, s := range servers {
					if !dead(i) {
						waitUntilFree(t, s) // without the help of those that are down
					}
				}
				for i, s := range servers {
					if dead(i) {
						d.back(t, s, proxies[i])
					}
				}
				waitUntilFree(t, servers...)
				waitForReplies(t, clients)
			}
		})
	}
}

// requireQuorum requires that the lock is acquired and released soon, with a wait or without, and
// long before a silent node is given up.
func requireQuorum(t testing.TB, clients []*rlock.Client, dead int) {
	t.Helper()
	var alive []*rlock.Client
	for i, c := range clients {
		if dead>>i&1 == 0 {
			alive = append(alive, c)
		}
	}
	for _, wait := range []time.Duration{rlock.NoWait, longWait} {
		bestOf(t, quorumOptions.NodeTimeout, func() time.Duration {
			start := time.Now()
			hold, err := redlock.NewOn(name, quorumOptions, clients...).
				TryLock(t.Context(), wait, longLease)
			for try := 0; wait == rlock.NoWait && errors.Is(err, redlock.ErrNoQuorum) && try < 2; try++ {
				// Some nodes, or this process, were slow. Use another name, because what those nodes
				// have not released yet would be in the way.
				t.Logf("dead: %05b: trying again after: %v", dead, err)
				waitForReplies(t, alive)
				start = time.Now()
				hold, err = redlock.NewOn(fmt.Sprint(name, try), quorumOptions, clients...).
					TryLock(t.Context(), wait, longLease)
			}
			require.NoError(t, err, "dead: %05b", dead)
			wait = longWait // for another attempt: the release may still be on its way
			require.True(t, hold.Valid())
			unlock(t, hold)
			require.False(t, hold.Valid())
			return time.Since(start)
		})
	}
}

// requireNoQuorum requires that the lock is not acquired, and that the error comes in time and
// names the nodes at fault.
func requireNoQuorum(t testing.TB, clients []*rlock.Client, dead int) {
	t.Helper()
	const wait = 50 * time.Millisecond
	for _, wait := range []time.Duration{rlock.NoWait, wait} {
		var (
			start time.Time
			err   error
		)
		for try := range 3 {
			// Each attempt has its own name, or what the first has not released yet would be in the
			// way of the second.
			l := redlock.NewOn(fmt.Sprint(wait, try), quorumOptions, clients...)
			start = time.Now()
			_, err = l.TryLock(t.Context(), wait, longLease)
			if wait == rlock.NoWait || errors.Is(err, redlock.ErrNoQuorum) {
				break
			}
			// On a busy machine a round may meet what the previous round had not released yet.
			require.ErrorIs(t, err, rlock.ErrNotAcquired, "dead: %05b", dead)
			ours := func(c *rlock.Client) bool { return strings.Contains(err.Error(), "held by "+c.ID()) }
			require.True(t, slices.ContainsFunc(clients, ours), "%v; dead: %05b", err, dead)
		}
		require.Less(t, time.Since(start), max(wait, quorumOptions.NodeTimeout)+promptly,
			"dead: %05b", dead)
		require.ErrorIs(t, err, redlock.ErrNoQuorum, "dead: %05b", dead)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired, "it is not held; dead: %05b", dead)
		var e *redlock.QuorumError
		require.ErrorAs(t, err, &e)
		require.Equal(t, 3, e.Want)
		require.Less(t, e.Granted, 3)
		require.Len(t, e.Nodes, 5-e.Granted)
		for _, n := range e.Nodes {
			require.Error(t, n.Err, n.Server)
		}
	}
}

// waitForReplies waits until every client reaches its server again and has the replies to all its
// requests: until then a server counts as silent.
func waitForReplies(t testing.TB, clients []*rlock.Client) {
	t.Helper()
	for i, c := range clients {
		l := redlock.NewOn("answers", quorumOptions, c)
		eventually(t, func() bool {
			hold, err := l.TryLock(t.Context(), rlock.NoWait, longLease)
			if err != nil {
				return false
			}
			unlock(t, hold)
			return true
		}, fmt.Sprintf("the server of client %d of %d replies again", i+1, len(clients)))
	}
}

// death is a way in which a node stops replying. Each test of one has its own nodes, behind
// proxies.
type death struct {
	name string
	die  func(t testing.TB, s *redistest.Server, p *faultproxy.Proxy)
	back func(t testing.TB, s *redistest.Server, p *faultproxy.Proxy)
}
