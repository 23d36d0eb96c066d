//go:build redis

package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/faults"
	"holdfast/redlock"
	"holdfast/rlock"
)

// A refusal is no release with a lost reply.
func TestUnlockOfWhatIsGoneSaysSoAlsoWhenTheNodeRefusedAtFirst(t *testing.T) {
	t.Parallel()
	servers, clients := startFive(t, rlock.Options{CommandTimeout: longWait})
	for _, s := range servers[3:] {
		takenAway(t, s)
	}
	hold := take(t, redlock.NewOn(name, atOnce, clients...), longLease)
	v, busy := &faults.Victim{Server: servers[2], Lock: name}, faults.Named(t, "is busy")
	v.Server.Do(t, "DEL", name)
	busy.Begin(t, v)
	unlocking := make(chan error, 1)
	go func() { unlocking <- hold.Unlock(t.Context()) }()
	<-time.After(100 * time.Millisecond)
	require.Empty(t, unlocking)
	busy.End(t, v)
	err := receive(t, unlocking, "Unlock hangs")
	require.ErrorIs(t, err, rlock.ErrLost)
	require.ErrorContains(t, err, "; c")
}

func TestCloseOfAMinorityOfTheClientsDoesNotEndTheHoldAndThatOfAThirdDoes(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	servers, clients := startFive(t, rlock.Options{WatchdogLease: lease})
	lock := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, lock, rlock.Watchdog)
	eventually(t, func() bool { return lock.Parts(hold) == 5 && count(servers) == 5 },
		"it is held on every node")
	for _, c := range clients[:2] {
		closeClient(t, c)
		before := hold.Deadline()
		eventually(t, func() bool { return hold.Err() != nil || hold.Deadline().After(before) },
			"it is renewed")
		require.True(t, hold.Valid(), "%v", hold.Err())
	}
	unlock(t, takeWith(hold.Context(), t, lock, rlock.Watchdog))
	another := redlock.NewOn("another", atOnce, clients...)
	unlock(t, take(t, another, rlock.Watchdog))

	ctx := hold.Context()
	closing := time.Now()
	closeClient(t, clients[2])
	require.ErrorIs(t, hold.Err(), rlock.ErrClosed, "the hold has ended when Close returns")
	require.ErrorIs(t, context.Cause(ctx), rlock.ErrClosed)
	require.False(t, hold.Valid())
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrClosed)
	waitUntilFree(t, servers[3:]...)
	within(t, promptly, func() {
		_, err := lock.Lock(t.Context(), rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrClosed)
		_, err = another.TryLock(t.Context(), rlock.NoWait, lease)
		require.ErrorIs(t, err, rlock.ErrClosed)
	})
	require.Less(t, time.Since(closing), longWait)
}

// It checks all that is in use in this process, so it does not run beside other tests.
func TestNothingIsInUseWhenEverythingIsReleased(t *testing.T) {
	servers, clients := startFive(t, rlock.Options{WatchdogLease: 3 * time.Second})
	lock := redlock.NewOn(name, hasty, clients...)
	ctx := rlock.WithOwner(t.Context())
	hold := acquired(t, lockInBackground(ctx, lock, rlock.Watchdog))
	nested := acquired(t, lockInBackground(ctx, lock, longLease))
	waiter := queueUp(t.Context(), t, lock, rlock.Watchdog)
	_, err := redlock.NewOn(name, atOnce, clients...).TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	_, err = lock.TryLock(t.Context(), 500*time.Millisecond, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	unlock(t, hold)
	unlock(t, nested)
	lost := acquired(t, waiter)
	for _, s := range servers[:3] {
		takenAway(t, s)
	}
	lostTo(t, lost)
	for _, s := range servers[:3] {
		s.Do(t, "DEL", name)
	}
	paused := servers[:3]
	for _, s := range paused {
		s.Pause(t)
	}
	_, err = lock.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	for _, s := range paused {
		s.Resume(t)
	}
	eventually(t, func() bool {
		open, waiting := redlock.InUse()
		return open == 0 && waiting == 0
	}, "a session or a queue is in use")
	waitUntilFree(t, servers...)
}
