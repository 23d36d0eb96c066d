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
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		ctx, cancel := context.WithCancel(t.Context())
		hold := takeWith(ctx, t, lock, longLease)
		cancel()
		require.ErrorIs(t, hold.Context().Err(), context.Canceled)
		require.True(t, hold.Valid(), "a lock is held until it is released")
		require.NoError(t, hold.Unlock(ctx))
		requireFree(t, s, k.name)

		owner, cancel := context.WithCancel(rlock.WithOwner(t.Context()))
		takeWith(owner, t, lock, longLease)
		cancel()
		require.NoError(t, lock.Unlock(owner))
		requireFree(t, s, k.name)
	})
}

func TestForceUnlockWakesAWaiterAndEndsTheHoldOfTheSameClientAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		c := newClient(t, s, rlock.Options{})
		held := k.contender(c, k.name)
		hold := take(t, held, longLease)
		inner := takeWith(hold.Context(), t, held, longLease)
		waiter := k.parked(t, s, k.lock(c, k.name))

		start := time.Now()
		forced, err := held.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.True(t, forced)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost,
			"its hold has to be over when ForceUnlock returns")
		next := acquired(t, waiter)
		require.Less(t, time.Since(start), 2*time.Second, "the waiter was not woken")
		lostTo(t, hold, nil)
		lostTo(t, inner, nil)
		require.True(t, next.Valid())
		unlock(t, next)
		requireFree(t, s, k.name)
	})
}

func TestForceUnlockOfAFreeLockSaysThatItWasFree(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		forced, err := lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.False(t, forced)
		unlock(t, take(t, lock, longLease))
		forced, err = lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		require.False(t, forced)
		requireFree(t, s, k.name)
	})
}

// Waiters learn of a force unlock before its caller does. What they acquire then must not be freed.
func TestForceUnlockSparesTheNextHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryContest(t, func(t *testing.T, k kind) {
		other := newClient(t, s, rlock.Options{})
		take(t, k.contender(other, k.name), longLease)

		gate := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, k.forceUnlock))
		c := newClientOn(t, gate, rlock.Options{})
		t.Cleanup(gate.open)
		waiter := k.parked(t, s, k.lock(c, k.name))
		forcing := make(chan error, 1)
		go func() {
			_, err := k.contender(c, k.name).ForceUnlock(t.Context())
			forcing <- err
		}()
		next := acquired(t, waiter)
		gate.open()
		require.NoError(t, receive(t, forcing, "ForceUnlock hangs"))
		require.NoError(t, next.Err())
		require.True(t, next.Valid())
		unlock(t, next)
	})
}

func TestUnlockOfADeletedKeySaysThatTheLockWasLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		hold := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), longLease)
		s.Do(t, "DEL", k.name)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
	})
}

func TestNestedLockOfADeletedKeyEndsTheHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		hold := take(t, lock, longLease)
		s.Do(t, "DEL", k.name)
		_, err := lock.TryLock(hold.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrLost)
		lostTo(t, hold, watchdog.ErrGone)
		require.Zero(t, s.DoInt(t, "EXISTS", k.name), "a nested lock has taken a free lock")
	})
}
