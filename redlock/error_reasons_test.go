package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestMinorityOfClosedClientsIsNotTheReasonOfAFailure(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	mine := newClients(t, servers, rlock.Options{})
	hold := takeOnAll(t, redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...),
		servers, longLease)
	closeClient(t, mine[2])
	for _, wait := range []time.Duration{rlock.NoWait, time.Second} {
		_, err := redlock.NewOn(name, atOnce, mine...).TryLock(t.Context(), wait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.NotErrorIs(t, err, rlock.ErrClosed)
		require.NotErrorIs(t, err, redlock.ErrNoQuorum)
	}
	unlock(t, hold)
	waitUntilFree(t, servers...)
}

func TestLossThatTheCloseOfOneClientCompletesIsALoss(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	hold := takeOnAll(t, redlock.NewOn(name, atOnce, clients...), servers, longLease)
	for _, s := range servers[:2] {
		s.Do(t, "DEL", name)
	}
	require.NoError(t, hold.Extend(t.Context(), longLease), "it finds out")
	eventually(t, func() bool { return redlock.NewOn(name, atOnce, clients...).Parts(hold) == 3 },
		"two parts are lost")
	require.True(t, hold.Valid())
	servers[2].Do(t, "DEL", name)
	closeClient(t, clients[3])
	require.NotErrorIs(t, hold.Err(), rlock.ErrClosed)
	lostTo(t, hold, "held on 2 of 5 nodes", "; d: ")
	waitUntilFree(t, servers[:3]...)
}

// A waiter that becomes the head with a moment left asks nodes that could not have replied in that
// time.
func TestWaitThatEndsBeforeNodesCanReplyIsNotAcquired(t *testing.T) {
	inBubble(
		t,
		redlock.Options{FsyncAlways: true, NodeTimeout: 3 * time.Second},
		func(t *testing.T, b *bubble) {
			for _, n := range b.nodes {
				n.delay("quorum_acquire.lua", 100*time.Millisecond)
			}
			head := inBackground(func() (*rlock.Hold, error) {
				return b.lock.TryLock(t.Context(), 50*time.Millisecond, longLease)
			})
			synctest.Wait()
			_, err := b.lock.TryLock(t.Context(), 55*time.Millisecond, longLease)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.NotErrorIs(t, err, redlock.ErrNoQuorum)
			require.Len(t, quorumError(t, err).Nodes, 5)
			require.ErrorIs(t, result(t, head).Err, redlock.ErrNoQuorum,
				"they had time, and have not answered")
		},
	)
}
