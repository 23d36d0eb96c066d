//go:build redis

package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestWaiterSendsNothingWhileItWaits(t *testing.T) {
	t.Parallel()
	// Just less than a waiter's longest sleep before it asks by itself.
	const length = 3 * time.Second
	for _, c := range []struct {
		name          string
		held, waiters int
	}{
		{"one waiter, held on all nodes", 5, 1},
		// it gets the others, and hears its own releases on them
		{"one waiter, held on a bare quorum", 3, 1},
		{"two waiters, held on a bare quorum", 3, 2}, // and each other's
		{"four waiters, held on four", 4, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 5)
			giveOne(t, servers[:c.held], name)
			var waiters []<-chan outcome
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range c.waiters {
				clients := newClients(t, servers, rlock.Options{})
				warm(t, clients)
				waiters = append(waiters,
					queueUp(ctx, t, redlock.NewOn(name, atOnce, clients...), longLease))
			}
			waitForListeners(t, servers, name, int64(c.waiters))
			// Each asks once more at most.
			calls := callsDuring(t, servers, length)
			t.Logf("%d commands in %v", calls, length)
			require.LessOrEqual(t, calls, c.waiters*10)
			giveBack(t, servers[:c.held], name)
			for range waiters {
				// Whichever it is unlocks for the next one.
				hold := acquiredByAny(t, waiters)
				unlock(t, hold)
			}
			waitUntilFree(t, servers...)
		})
	}
}

// acquiredByAny returns the hold of the first waiter to get one.
func acquiredByAny(t testing.TB, waiters []<-chan outcome) *rlock.Hold {
	t.Helper()
	var hold *rlock.Hold
	eventually(t, func() bool {
		for i, w := range waiters {
			select {
			case o, open := <-w:
				if !open {
					continue
				}
				require.NoError(t, o.Err, "waiter %d", i)
				hold = o.Hold
				return true
			default:
			}
		}
		return false
	}, "somebody gets it")
	return hold
}

// With two nodes down a round is lost at the first refusal, so a waiter never learns that one owner
// has a quorum.
func TestWaiterDoesNotPollWhileAMinorityIsDown(t *testing.T) {
	t.Parallel()
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			servers := startNodes(t, 5)
			clients, proxies := proxied(t, servers, rlock.Options{})
			warm(t, clients)
			for i := range 2 {
				d.die(t, servers[i], proxies[i])
			}
			alive := servers[2:]
			// All nodes that are alive must vote in time, or the waiter asks again after 5 s.
			patient := redlock.Options{FsyncAlways: true, NodeTimeout: 2 * time.Second}
			l := redlock.NewOn(d.name, patient, clients...)
			bestOf(t, soon, func() time.Duration {
				giveOne(t, alive, d.name)
				done := queueUp(t.Context(), t, l, longLease)
				waitForListeners(t, alive, d.name, 1)
				resetStats(t, alive)
				<-time.After(2 * time.Second)
				calls := scriptCalls(t, alive)
				t.Logf("%d commands in 2s", calls)
				require.LessOrEqual(t, calls, 6*6)
				start := time.Now()
				giveBack(t, alive, d.name)
				next := result(t, done)
				require.NoError(t, next.Err)
				unlock(t, next.Hold)
				waitUntilFree(t, alive...)
				return next.At.Sub(start)
			})
			for i := range 2 {
				d.back(t, servers[i], proxies[i])
			}
			waitForReplies(t, clients)
			waitUntilFree(t, servers...)
		})
	}
}
