package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestOwnerOfANonReentrantLockLearnsThatItHoldsIt(t *testing.T) {
	t.Parallel()
	for _, k := range nonReentrant() {
		t.Run(k.name, func(t *testing.T) { ownerLearnsThatItHoldsTheLock(t, k) })
	}
}

func ownerLearnsThatItHoldsTheLock(t *testing.T, k kind) {
	s := redistest.Start(t)
	c := newClient(t, s, anonymous)
	lock := k.lock(c, "order")
	hold := take(t, lock, longLease)
	before := s.CommandStats(t)["evalsha"]
	for _, again := range []func() (*rlock.Hold, error){
		func() (*rlock.Hold, error) {
			return lock.TryLock(hold.Context(), rlock.NoWait, longLease)
		},
		func() (*rlock.Hold, error) { return lock.Lock(hold.Context(), longLease) },
	} {
		_, err := again()
		require.ErrorIs(t, err, rlock.ErrReentry)
		require.NotErrorIs(t, err, rlock.ErrNotAcquired, "waiting does not help")
	}
	require.Equal(t, before, s.CommandStats(t)["evalsha"], "no command was sent")
	require.NoError(t, hold.Err())
	_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired, "another owner")
	unlock(t, hold)
	unlock(t, take(t, lock, longLease))
}

func TestFairLocksOfBothKindsAreServedInOneOrder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	nests := newClient(t, s, rlock.Options{}).NewFairLock("job")
	flat := newClient(t, s, rlock.Options{}).NewNonReentrantFairLock("job")
	hold := take(t, flat, longLease)
	waiters := waitInTurn(t, s, nests, flat, flat, nests)
	for i, w := range waiters {
		unlock(t, hold)
		hold = acquired(t, w.done)
		for _, later := range waiters[i+1:] {
			require.Empty(t, later.done)
		}
	}
	unlock(t, hold)
	requireNothingFairLeft(t, s)
}
