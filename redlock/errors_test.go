package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

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
