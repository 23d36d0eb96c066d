//go:build redis

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// losses are ways to take a lock away from its holder on one node.
var losses = map[string]func(t testing.TB, s *redistest.Server, c *rlock.Client){
	"force unlock": func(t testing.TB, _ *redistest.Server, c *rlock.Client) {
		forced, err := c.NewLock(name).ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
	},
	"deleted": func(t testing.TB, s *redistest.Server, _ *rlock.Client) {
		s.Do(t, "DEL", name)
	},
	"emptied": func(t testing.TB, s *redistest.Server, _ *rlock.Client) {
		s.Do(t, "FLUSHALL")
	},
	"clock jumped": func(t testing.TB, s *redistest.Server, _ *rlock.Client) {
		s.Do(t, "PEXPIRE", name, "1")
	},
	"another's now": func(t testing.TB, s *redistest.Server, _ *rlock.Client) { takenAway(t, s) },
}

func TestLossOnAMinorityChangesNothingAndOnAThirdNodeEndsTheHold(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second
	for how, lose := range losses {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
			other := newClients(t, servers, rlock.Options{})
			hold := take(t, redlock.NewOn(name, atOnce, clients...), rlock.Watchdog)
			waitUntilHeld(t, servers)
			// No node can join again, so that losses add up.
			for i := range 2 {
				lose(t, servers[i], clients[i])
				takenAway(t, servers[i])
			}
			before := hold.Deadline()
			eventually(
				t,
				func() bool { return hold.Err() != nil || hold.Deadline().After(before.Add(lease/2)) },
				"it is renewed",
			)
			require.True(t, hold.Valid(), "%v", hold.Err())
			if how != "another's now" { // then it is not free on three
				_, err := redlock.NewOn(name, atOnce, other...).
					TryLock(t.Context(), rlock.NoWait, lease)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
			}

			lose(t, servers[2], clients[2])
			takenAway(t, servers[2])
			lostTo(t, hold, "held on 2 of 5 nodes, 3 are needed; a", "b: ", "; c: ")
			waitUntilFree(t, servers[3:]...)
		})
	}
}

// The process was stopped, or is very busy: the passed deadline is not reported yet.
func TestNothingRevivesAHoldWhoseLossIsNotReportedYet(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	warm(t, clients)
	for _, s := range servers[3:] {
		s.Do(t, "HSET", name, "somebody", "1")
	}
	hold := take(t, redlock.NewOn(name, atOnce, clients...), rlock.Watchdog)
	require.Equal(t, 3, redlock.NewOn(name, atOnce, clients...).Parts(hold))

	// The third node cannot be reached any more, and its client's watchdog is busy.
	busy := take(t, clients[2].NewLock("busy"), time.Second)
	servers[2].Pause(t)
	blocked, unblock := make(chan struct{}), make(chan struct{})
	hooks.Get[*rlock.Lock, *rlock.Hold]().OnEnd(busy, func(error) { close(blocked); <-unblock })
	t.Cleanup(func() { close(unblock) })
	receive(t, blocked, "the watchdog is not busy")

	eventually(t, func() bool { return !hold.Valid() }, "the deadline passes")
	for _, s := range servers[3:] {
		s.Do(t, "DEL", name)
	}
	require.Never(t, hold.Valid, lease, 5*time.Millisecond, "a node that joined revived it")
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
}
