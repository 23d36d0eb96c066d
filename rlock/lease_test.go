package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// shortLease is short enough to see several of them go by, and long enough for a renewal on a busy machine.
const shortLease = 300 * time.Millisecond

func TestWatchdogKeepsALockForTenLeases(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	hold := take(t, newClient(t, s, rlock.Options{WatchdogLease: shortLease}).NewLock("lock"), rlock.Watchdog)
	elsewhere := newClient(t, s, rlock.Options{}).NewLock("lock")
	end := time.Now().Add(10 * shortLease)
	for time.Now().Before(end) {
		_, err := elsewhere.TryLock(t.Context(), shortLease/3, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.True(t, hold.Valid())
		require.LessOrEqual(t, s.DoInt(t, "PTTL", "lock"), shortLease.Milliseconds())
	}
	require.NoError(t, hold.Context().Err())
	unlock(t, hold)
}

func TestExplicitLeaseIsNotRenewed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	// The watchdog is kept busy by another lock, so that a tick passes.
	client := newClient(t, s, rlock.Options{WatchdogLease: shortLease})
	other := take(t, client.NewLock("other"), rlock.Watchdog)
	hold := take(t, client.NewLock("lock"), shortLease)
	deadline := hold.Deadline()
	receive(t, hold.Done(), "the lease did not end")
	require.Equal(t, deadline, hold.Deadline())
	waitUntilFree(t, s, client.NewLock("lock"))
	require.True(t, other.Valid())

	var lost *rlock.LostError
	require.ErrorAs(t, hold.Err(), &lost)
	require.Equal(t, "lock", lost.Lock)
	require.ErrorIs(t, lost, watchdog.ErrExpired)
}

func TestNestedWatchdogLevelRenewsOnlyWhileItLasts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{WatchdogLease: shortLease}).NewLock("lock")
	outer := take(t, lock, shortLease)
	inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
	select {
	case <-outer.Done():
		require.FailNow(t, "lost while a level asks for the watchdog", outer.Err())
	case <-time.After(4 * shortLease):
	}
	unlock(t, inner)
	require.NoError(t, outer.Err())
	select {
	case <-outer.Done():
		require.ErrorIs(t, outer.Err(), rlock.ErrLost)
	case <-time.After(4 * shortLease):
		require.FailNow(t, "still renewed, though no level asks for the watchdog")
	}
}

func TestNestedExplicitLeaseDoesNotEndTheRenewals(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{WatchdogLease: shortLease}).NewLock("lock")
	outer := take(t, lock, rlock.Watchdog)
	inner := takeWith(outer.Context(), t, lock, shortLease)
	unlock(t, inner)
	select {
	case <-outer.Done():
		require.FailNow(t, "lost while a level asks for the watchdog", outer.Err())
	case <-time.After(3 * shortLease):
	}
	unlock(t, outer)
}

// The deadline is reckoned from before the command was sent, so it comes before the key expires.
func TestHoldEndsAtItsDeadline(t *testing.T) {
	s := redistest.Start(t)
	lock := newClient(t, s, rlock.Options{}).NewLock("lock")
	best := time.Hour
	for range 3 {
		before := time.Now()
		hold := take(t, lock, shortLease)
		after := time.Now()
		deadline := hold.Deadline()
		require.False(t, deadline.Before(watchdog.Deadline(before, shortLease)))
		require.False(t, deadline.After(watchdog.Deadline(after, shortLease)))
		require.True(t, hold.Valid())
		require.NoError(t, hold.Err())

		<-hold.Context().Done()
		ended := time.Now()
		require.False(t, ended.Before(deadline), "ended before its deadline")
		require.False(t, hold.Valid())
		require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrLost)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		best = min(best, ended.Sub(deadline))
		waitUntilFree(t, s, lock)
	}
	require.Less(t, best, 20*time.Millisecond)
}

func TestRenewalsMoveTheDeadline(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	hold := take(t, newClient(t, s, rlock.Options{WatchdogLease: shortLease}).NewLock("lock"), rlock.Watchdog)
	for range 3 {
		deadline := hold.Deadline()
		eventually(t, func() bool { return hold.Deadline().After(deadline) }, "the deadline has moved")
	}
}
