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

func TestUnlockWorksOnACancelledContext(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	lock := redlock.NewOn(name, atOnce, clients...)
	ctx, cancel := context.WithCancel(rlock.WithOwner(t.Context()))
	hold := takeWith(ctx, t, lock, longLease)
	nested := takeWith(ctx, t, lock, longLease)
	cancel()
	require.ErrorIs(t, hold.Context().Err(), context.Canceled)
	require.True(t, hold.Valid())
	require.NoError(t, nested.Unlock(ctx))
	require.NoError(t, lock.Unlock(ctx))
	waitUntilFree(t, servers...)
}

func TestCloseOfAMajorityEndsAWaitAtOnce(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{})
	held := redlock.NewOn(name, atOnce, newClients(t, servers, rlock.Options{})...)
	hold := take(t, held, longLease)
	// A node that a waiter gets before the client closes would stay held for a lease.
	eventually(t, func() bool { return held.Parts(hold) == 5 }, "it is held on every node")
	waiter := lockInBackground(t.Context(), redlock.NewOn(name, atOnce, clients...), longLease)
	next := lockInBackground(t.Context(), redlock.NewOn(name, atOnce, clients...), longLease)
	waitForListeners(t, servers, name, 1)
	closeClient(t, clients[0])
	closeClient(t, clients[1])
	require.Empty(t, waiter)
	within(t, promptly, func() {
		closeClient(t, clients[2])
		require.ErrorIs(t, result(t, waiter).Err, rlock.ErrClosed)
		require.ErrorIs(t, result(t, next).Err, rlock.ErrClosed)
	})
	require.True(t, hold.Valid())
	unlock(t, hold)
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

func TestReleaseOnCloseFreesTheNodesThatAreClosed(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{ReleaseOnClose: true})
	lock := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, lock, rlock.Watchdog)
	eventually(t, func() bool { return lock.Parts(hold) == 5 && count(servers) == 5 },
		"it is held on every node")
	closeClient(t, clients[0])
	waitUntilFree(t, servers[0])
	require.True(t, hold.Valid())
	for _, c := range clients[1:] {
		closeClient(t, c)
	}
	require.ErrorIs(t, hold.Err(), rlock.ErrClosed)
	waitUntilFree(t, servers...)
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrClosed)
}

func TestCloseWhileUnlockWaitsForHungNodes(t *testing.T) {
	t.Parallel()
	const limit = 500 * time.Millisecond
	servers, clients := startFive(t, rlock.Options{CommandTimeout: limit})
	lock := redlock.NewOn(name, hasty, clients...)
	hold := acquired(t, lockInBackground(t.Context(), lock, longLease))
	eventually(t, func() bool { return lock.Parts(hold) == 5 && count(servers) == 5 },
		"it is held on every node")
	for _, s := range servers[:3] {
		s.Pause(t)
	}
	unlocking := make(chan error, 1)
	go func() { unlocking <- hold.Unlock(t.Context()) }()
	closed := make(chan error, 5)
	for _, c := range clients {
		go func() { closed <- c.Close(context.Background()) }()
	}
	within(t, limit+promptly, func() {
		err := receive(t, unlocking, "Unlock hangs")
		if err != nil {
			require.NotErrorIs(t, err, rlock.ErrLost)
		}
	})
	for _, s := range servers[:3] {
		s.Resume(t)
	}
	for range clients {
		require.NoError(t, receive(t, closed, "Close hangs"))
	}
}
