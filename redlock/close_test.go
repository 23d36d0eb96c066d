package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestUnlockReturnsWhileAMinorityHangsAndReleasesItLater(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, hasty, clients...)
	hold := acquired(t, lockInBackground(t.Context(), lock, longLease))
	eventually(t, func() bool { return lock.Parts(hold) == 5 && count(servers) == 5 },
		"it is held on every node")
	for _, s := range servers[:2] {
		s.Pause(t)
	}
	within(t, promptly, func() { unlock(t, hold) })
	require.Zero(t, count(servers[2:]))
	for _, s := range servers[:2] {
		s.Resume(t)
	}
	waitUntilFree(t, servers...)
}

func TestUnlockWithoutAQuorumIsAnUnknownOutcomeInTimeAndIsFinishedLater(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	servers, clients := startFive(t, rlock.Options{CommandTimeout: limit})
	lock := redlock.NewOn(name, hasty, clients...)
	hold := acquired(t, lockInBackground(t.Context(), lock, longLease))
	eventually(t, func() bool { return lock.Parts(hold) == 5 && count(servers) == 5 },
		"it is held on every node")
	for _, s := range servers[:3] {
		s.Pause(t)
	}
	ctx := hold.Context()
	within(t, limit+promptly, func() {
		err := hold.Unlock(t.Context())
		require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, rlock.ErrLost)
		quorum := new(redlock.QuorumError)
		require.ErrorAs(t, err, &quorum)
		require.Equal(t, 2, quorum.Granted)
	})
	require.ErrorIs(t, context.Cause(ctx), rlock.ErrReleased)
	require.False(t, hold.Valid())
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
	require.Zero(t, count(servers[3:]))
	for _, s := range servers[:3] {
		s.Resume(t)
	}
	waitUntilFree(t, servers...)
}

func TestWaiterOfWhichAMinorityIsClosedIsStillWoken(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	held := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	hold := take(t, held, longLease)
	eventually(t, func() bool { return held.Parts(hold) == 5 }, "it is held on every node")
	waiter := lockInBackground(t.Context(), redlock.NewOn(name, atOnce, clients...), longLease)
	waitForListeners(t, servers, name, 1)
	closeClient(t, clients[0])
	closeClient(t, clients[3])
	unlock(t, hold)
	released := time.Now()
	next := acquired(t, waiter)
	require.Less(t, time.Since(released), 3*time.Second)
	unlock(t, next)
	waitUntilFree(t, servers...)
}
