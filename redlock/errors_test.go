package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestErrorSaysOnceWhatIsWrongWithSeveralNodes(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	give(t, servers[:1])
	servers[1].Do(t, "REPLICAOF", "127.0.0.1", "1")
	servers[2].Do(t, "REPLICAOF", "127.0.0.1", "1")
	_, err := redlock.NewOn(name, atOnce, clients...).TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired,
		"but for somebody on one node there would be a quorum")
	require.NotErrorIs(t, err, redlock.ErrNoQuorum)
	e := quorumError(t, err)
	var held *rlock.HeldError
	require.ErrorAs(t, e.Nodes[0].Err, &held)
	require.Equal(t, "somebody:0", held.Owner)
	require.Regexp(t, `; a: held by somebody:0 for another (10m0s|9m5)`, err.Error())
	require.Regexp(
		t,
		"; b, c: [^;]*READONLY ",
		err.Error(),
	) // before Redis 7 behind where the script was
	require.Equal(t, 1, strings.Count(err.Error(), "READONLY"))
	require.Regexp(t, `\d of 5 nodes granted it, 3 are needed`, err.Error())
	waitUntilFree(t, servers[3:]...)
}

func TestHolderOnAQuorumIsTheReasonWhateverTheOtherNodesDo(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	l := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, l, longLease)
	eventually(t, func() bool { return len(keysOf(t, servers...)) == 5 }, "held everywhere")
	servers[0].Kill(t)
	servers[1].Pause(t)
	for _, wait := range []time.Duration{rlock.NoWait, soon} {
		_, err := l.TryLock(t.Context(), wait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		e := quorumError(t, err)
		require.Len(t, e.Nodes, 5)
		require.Zero(t, e.Granted)
	}
	// With a third node that does not refuse, the wait goes on.
	servers[2].Pause(t)
	eventually(t, func() bool {
		_, err := l.TryLock(t.Context(), rlock.NoWait, longLease)
		return errors.Is(err, redlock.ErrNoQuorum) && !errors.Is(err, rlock.ErrNotAcquired)
	}, "too few nodes answer")
	servers[1].Resume(t)
	servers[2].Resume(t)
	unlock(t, hold)
	waitUntilFree(t, servers[1:]...)
}

func TestSplitVoteIsNotAcquired(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	give(t, servers[:3])
	_, err := redlock.NewOn(name, atOnce, clients...).TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	for _, owner := range []string{"somebody:0", "somebody:1", "somebody:2"} {
		require.ErrorContains(t, err, owner)
	}
	waitUntilFree(t, servers[3:]...)
}

func TestEndedContextIsReportedBeforeAnyNodeIsAsked(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	l := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	resetStats(t, servers)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		for _, wait := range []time.Duration{rlock.NoWait, longWait} {
			_, err := l.TryLock(ctx, wait, longLease)
			require.ErrorIs(t, err, context.Canceled)
			_ = quorumError(t, err)
		}
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	_, err := l.Lock(late, longLease)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, scriptCalls(t, servers))
}

func TestContextThatEndsWhileNodesAreSilentIsReported(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	for _, s := range servers[:3] {
		s.Pause(t)
	}
	l := redlock.NewOn(name, redlock.Options{FsyncAlways: true, NodeTimeout: longWait}, clients...)
	for _, wait := range []time.Duration{rlock.NoWait, longWait} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		within(t, promptly, func() {
			_, err := l.TryLock(ctx, wait, longLease)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		})
	}
	for _, s := range servers[:3] {
		s.Resume(t)
	}
	waitUntilFree(t, servers...)
}

func TestYoungNodesAreNamedWithTheTimeTheyAreNotCounted(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{})
	lock := redlock.NewOn(name, redlock.Options{NodeTimeout: 3 * time.Second}, clients...)
	_, err := lock.TryLock(t.Context(), longWait, rlock.Watchdog)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	var young *redlock.DelayedError
	require.ErrorAs(t, err, &young)
	require.Greater(t, young.For, 20*time.Second)
	require.LessOrEqual(t, young.For, 31*time.Second)
	require.False(t, young.Emptied)
	require.ErrorContains(t, err, "not counted for another")
	require.ErrorContains(t, err, "MaxLease")
	require.Empty(t, keysOf(t, servers...))
}

func TestLockOfClosedClientsIsErrClosed(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{})
	l := redlock.NewOn(name, atOnce, clients...)
	closeClient(t, clients[0])
	unlock(t, take(t, l, longLease))
	closeClient(t, clients[1])
	for _, wait := range []time.Duration{rlock.NoWait, longWait} {
		within(t, promptly, func() {
			_, err := l.TryLock(t.Context(), wait, longLease)
			require.ErrorIs(t, err, rlock.ErrClosed)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
		})
	}
	waitUntilFree(t, servers...)
}

func TestQuorumThatRefusesDecidesThoughOtherNodesHang(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	giveOne(t, servers[2:], name)
	servers[0].Pause(t)
	servers[1].Pause(t)
	lock := redlock.NewOn(name, redlock.Options{FsyncAlways: true, NodeTimeout: longWait},
		clients...)
	within(t, promptly, func() {
		_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.ErrorContains(t, err, "a, b: its reply was not waited for")
		// named together, unless their leases differ by now
		for _, node := range quorumError(t, err).Nodes[2:] {
			var held *rlock.HeldError
			require.ErrorAs(t, node.Err, &held)
			require.Equal(t, "somebody", held.Owner)
		}
	})
}

func TestRoundThatTheEndOfTheWaitCutsShortDoesNotHideWhatWasKnownBefore(t *testing.T) {
	t.Parallel()
	const lease, wait = 2 * time.Second, 3 * time.Second
	o := redlock.Options{FsyncAlways: true, NodeTimeout: time.Minute}
	inBubble(t, o, func(t *testing.T, b *bubble) {
		for _, n := range b.nodes {
			n.reply("quorum_acquire.lua", heldBy("somebody", int(lease.Milliseconds())))
			time.AfterFunc(lease/2, n.server.Pause)
		}
		_, err := b.lock.TryLock(t.Context(), wait, longLease)
		require.Equal(t, wait, time.Since(b.start))
		asked := b.rounds()
		require.Less(t, asked[len(asked)-1], lease/2, "no node executes a request of the last round")
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorContains(t, err, "held by somebody")
	})
}

// Its nodes were not asked, because a waiter of this process was queued before it.
func TestErrorOfALockThatAskedNoNodeDoesNotSayThatClientsAreClosed(t *testing.T) {
	err := error(&redlock.QuorumError{Want: 3})
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrClosed)
}
