//go:build redis

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

// shortLease is short enough to see several of them pass, and long enough for a renewal on a busy
// machine.
const shortLease = 4 * time.Second

// All kinds are tested at the same time, because five leases take long.
func TestWatchdogKeepsALockForFiveLeases(t *testing.T) {
	t.Parallel()
	const lease = 5 * time.Second
	s := redistest.Start(t)
	client := newClient(t, s, rlock.Options{WatchdogLease: lease})
	other := newClient(t, s, rlock.Options{})
	holds := map[string]*rlock.Hold{}
	for _, k := range kinds {
		holds[k.name] = take(t, k.lock(client, k.name), rlock.Watchdog)
	}
	end := time.Now().Add(5 * lease)
	for time.Now().Before(end) {
		for _, k := range kinds {
			contender := k.contender(other, k.name)
			_, err := contender.TryLock(t.Context(), 50*time.Millisecond, rlock.Watchdog)
			require.Error(t, err, k.name)
			require.True(t, holds[k.name].Valid(), k.name)
			require.Positive(t, k.lasts(t, s, k.name, holds[k.name].Owner()), k.name)
			require.LessOrEqual(t, s.DoInt(t, "PTTL", k.name), lease.Milliseconds(), k.name)
		}
	}
	onEveryKind(t, func(t *testing.T, k kind) {
		require.NoError(t, holds[k.name].Context().Err())
		unlock(t, holds[k.name])
		waitUntilFree(t, s, k.name)
	})
}

func TestExplicitLeaseIsNotRenewed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		t.Parallel()
		// Another lock keeps the watchdog busy, so that a tick passes.
		client := newClient(t, s, rlock.Options{WatchdogLease: 2 * shortLease})
		other := take(t, k.lock(client, "other "+k.name), rlock.Watchdog)
		hold := take(t, k.lock(client, k.name), shortLease)
		deadline := hold.Deadline()
		receive(t, hold.Done(), "the lease did not end")
		require.Equal(t, deadline, hold.Deadline())
		waitUntilFree(t, s, k.name)
		require.True(t, other.Valid())

		var lost *rlock.LostError
		require.ErrorAs(t, hold.Err(), &lost)
		require.Equal(t, k.name, lost.Lock)
		require.ErrorIs(t, lost, watchdog.ErrExpired)
	})
}

func TestNestedWatchdogLevelRenewsOnlyWhileItLasts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		lock := k.lock(newClient(t, s, rlock.Options{WatchdogLease: shortLease}), k.name)
		outer := take(t, lock, shortLease)
		inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
		select {
		case <-outer.Done():
			require.FailNow(t, "lost while a level asks for the watchdog", outer.Err())
		case <-time.After(2 * shortLease):
		}
		unlock(t, inner)
		require.NoError(t, outer.Err())
		select {
		case <-outer.Done():
			require.ErrorIs(t, outer.Err(), rlock.ErrLost)
		case <-time.After(4 * shortLease):
			require.FailNow(t, "still renewed, though no level asks for the watchdog")
		}
		waitUntilFree(t, s, k.name)
	})
}

func TestNestedExplicitLeaseDoesNotEndTheRenewals(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		lock := k.lock(newClient(t, s, rlock.Options{WatchdogLease: shortLease}), k.name)
		outer := take(t, lock, rlock.Watchdog)
		inner := takeWith(outer.Context(), t, lock, shortLease)
		unlock(t, inner)
		select {
		case <-outer.Done():
			require.FailNow(t, "lost while a level asks for the watchdog", outer.Err())
		case <-time.After(2 * shortLease):
		}
		unlock(t, outer)
		requireFree(t, s, k.name)
	})
}

// The deadline counts from before the command was sent, so it comes before the key expires.
func TestHoldEndsAtItsDeadline(t *testing.T) {
	const lease = time.Second
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		best := time.Hour
		for try := 0; try < 10 && best >= 20*time.Millisecond; try++ { // a busy machine may delay some
			before := time.Now()
			hold := take(t, lock, lease)
			after := time.Now()
			deadline := hold.Deadline()
			require.False(t, deadline.Before(watchdog.Deadline(before, lease)))
			require.False(t, deadline.After(watchdog.Deadline(after, lease)))
			require.True(t, hold.Valid())
			require.NoError(t, hold.Err())

			<-hold.Context().Done()
			ended := time.Now()
			require.False(t, ended.Before(deadline), "ended before its deadline")
			require.False(t, hold.Valid())
			require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrLost)
			require.ErrorIs(t, hold.Err(), rlock.ErrLost)
			afterExpiry(t, s, lock)
			best = min(best, ended.Sub(deadline))
		}
		require.Less(t, best, 20*time.Millisecond)
	})
}

func TestRenewalsMoveTheDeadline(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		hold := take(t, k.lock(newClient(t, s, rlock.Options{WatchdogLease: shortLease}), k.name),
			rlock.Watchdog)
		for range 3 {
			deadline := hold.Deadline()
			eventually(t, func() bool { return hold.Deadline().After(deadline) },
				"the deadline has moved")
		}
	})
}
