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

func TestUnlockWorksOnACancelledContext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	hold := takeWith(ctx, t, c.NewLock("order"), longLease)
	cancel()
	require.ErrorIs(t, hold.Context().Err(), context.Canceled)
	require.True(t, hold.Valid(), "a lock is held until it is released")
	require.NoError(t, hold.Unlock(ctx))
	require.Zero(t, s.DoInt(t, "EXISTS", "order"))

	owner, cancel := context.WithCancel(rlock.WithOwner(t.Context()))
	takeWith(owner, t, c.NewLock("order"), longLease)
	cancel()
	require.NoError(t, c.NewLock("order").Unlock(owner))
	require.Zero(t, s.DoInt(t, "EXISTS", "order"))
}

// lostTo requires that the hold ends soon with ErrLost for the given reason, that its context says so, and that releasing
// it says so as well.
func lostTo(t *testing.T, hold *rlock.Hold, reason error) {
	t.Helper()
	ctx := hold.Context()
	receive(t, ctx.Done(), "the context of a lost hold has not ended")
	lost := new(rlock.LostError)
	require.ErrorAs(t, context.Cause(ctx), &lost)
	require.ErrorIs(t, lost, rlock.ErrLost)
	if reason != nil {
		require.ErrorIs(t, lost, reason)
	}
	receive(t, hold.Done(), "a lost hold is not done")
	require.False(t, hold.Valid())
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
}

func TestForceUnlockWakesAWaiterAndEndsTheHoldOfTheSameClientAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	inner := takeWith(hold.Context(), t, c.NewLock("order"), longLease)
	waiter := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	awaitListeners(t, s, "order", 1)

	start := time.Now()
	forced, err := c.NewLock("order").ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	require.ErrorIs(t, hold.Err(), rlock.ErrLost, "its hold has to be over when ForceUnlock returns")
	next := acquired(t, waiter)
	require.Less(t, time.Since(start), 2*time.Second, "the waiter was not woken")
	lostTo(t, hold, nil)
	lostTo(t, inner, nil)
	require.True(t, next.Valid())
	unlock(t, next)
}

func TestForceUnlockEndsTheHoldOfAnotherClientAtItsNextRenewal(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder := newClient(t, s, rlock.Options{WatchdogLease: 600 * time.Millisecond})
	other := newClient(t, s, rlock.Options{})
	hold := take(t, holder.NewLock("order"), rlock.Watchdog)
	start := time.Now()
	forced, err := other.NewLock("order").ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	lostTo(t, hold, watchdog.ErrGone)
	require.Less(t, time.Since(start), 500*time.Millisecond, "a renewal comes every 200 ms, the deadline after 592 ms")
	require.Zero(t, s.DoInt(t, "EXISTS", "order"))
}

// A force unlock is known to those who wait before it is known to the one who asked for it: what they take then was not
// meant.
func TestForceUnlockSparesWhoeverTookTheLockAfterIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	other := newClient(t, s, rlock.Options{})
	take(t, other.NewLock("order"), longLease)

	gate := keepAnswers(s.Client(t), loaded(t, s, "force_unlock.lua"))
	c := newClientOn(t, gate, rlock.Options{})
	t.Cleanup(gate.open)
	waiter := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	awaitListeners(t, s, "order", 1)
	forcing := make(chan error, 1)
	go func() {
		_, err := c.NewLock("order").ForceUnlock(t.Context())
		forcing <- err
	}()
	next := acquired(t, waiter)
	gate.open()
	require.NoError(t, receive(t, forcing, "ForceUnlock hangs"))
	require.NoError(t, next.Err())
	require.True(t, next.Valid())
	unlock(t, next)
}

func TestDeletedKeyEndsTheHoldAtTheNextRenewal(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{WatchdogLease: 600 * time.Millisecond})
	hold := take(t, c.NewLock("order"), rlock.Watchdog)
	inner := takeWith(hold.Context(), t, c.NewLock("order"), rlock.Watchdog)
	start := time.Now()
	require.EqualValues(t, 1, s.DoInt(t, "DEL", "order"))
	lostTo(t, hold, watchdog.ErrGone)
	require.Less(t, time.Since(start), 500*time.Millisecond, "a renewal comes every 200 ms, the deadline after 592 ms")
	lostTo(t, inner, watchdog.ErrGone)
	require.Zero(t, s.DoInt(t, "EXISTS", "order"))
}

func TestUnlockOfADeletedKeySaysThatTheLockWasLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	s.Do(t, "DEL", "order")
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
}

func TestNestedLockOfADeletedKeyEndsTheHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	hold := take(t, c.NewLock("order"), longLease)
	s.Do(t, "DEL", "order")
	_, err := c.NewLock("order").TryLock(hold.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrLost)
	lostTo(t, hold, watchdog.ErrGone)
	require.Zero(t, s.DoInt(t, "EXISTS", "order"), "a nested lock has taken a free lock")
}
