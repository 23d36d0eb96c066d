//go:build redis

package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
	"holdfast/watchdog"
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

func TestExplicitLeaseEndsInTimeAndIsNotRenewed(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	_, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	warm(t, clients)
	lock := redlock.NewOn(name, atOnce, clients...)
	before := time.Now()
	hold := take(t, lock, lease)
	eventually(t, func() bool { return lock.Parts(hold) == 5 }, "it is held on every node")
	deadline := hold.Deadline()
	require.False(t, deadline.Before(watchdog.Deadline(before, lease)))
	require.True(t, deadline.Before(watchdog.Deadline(time.Now(), lease)),
		"it counts from the question, not from the answer")
	lostTo(t, hold, " of 5 nodes, 3 are needed")
	require.False(t, time.Now().Before(deadline))
	require.ErrorIs(t, hold.Err(), watchdog.ErrExpired)
	require.Equal(t, deadline, hold.Deadline())
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

func TestValidityIsOverAtTheDeadlineWhenAMajorityDies(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	hold := take(t, redlock.NewOn(name, atOnce, clients...), rlock.Watchdog)
	waitUntilHeld(t, servers)
	ctx := hold.Context()
	onAll(servers[1:4], func(s *redistest.Server) { s.Kill(t) })
	killed := time.Now()
	receive(t, ctx.Done(), "a hold without a quorum goes on")
	ended := time.Now()
	require.False(t, ended.Before(hold.Deadline()), "it ended while it could be trusted")
	require.True(t, hold.Deadline().Before(killed.Add(lease)))
	require.Less(t, ended.Sub(hold.Deadline()), promptly)
	require.False(t, hold.Valid())
	// c and d with it, unless they found out before
	lostTo(t, hold, "held on 2 of 5 nodes, 3 are needed", "; b")
	waitUntilFree(t, servers[0], servers[4])
	lost := new(rlock.LostError)
	require.ErrorAs(t, hold.Err(), &lost)
	require.Equal(t, 1, strings.Count(lost.Error(), "lost"), lost.Error())
}

func TestGrantsThatComeAfterAFailureAreReleased(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	warm(t, clients)
	for _, s := range servers[2:] {
		s.Pause(t)
	}
	_, err := redlock.NewOn(name, hasty, clients...).TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	for _, s := range servers[2:] {
		s.Resume(t)
	}
	waitUntilFree(t, servers...)
	require.Never(t, func() bool { return count(servers) > 0 }, 200*time.Millisecond,
		10*time.Millisecond)

	// Here the failure is certain while nodes may still reply in time.
	for _, s := range servers[:3] {
		takenAway(t, s)
	}
	for _, s := range servers[3:] {
		s.Pause(t)
	}
	slow := redlock.Options{FsyncAlways: true, NodeTimeout: longWait}
	_, err = redlock.NewOn(name, slow, clients...).TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	for _, s := range servers[3:] {
		s.Resume(t)
	}
	waitUntilFree(t, servers[3:]...)
	require.Never(t, func() bool { return count(servers[3:]) > 0 }, 200*time.Millisecond,
		10*time.Millisecond)
}
