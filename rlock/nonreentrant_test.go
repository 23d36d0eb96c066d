package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestOwnerOfANonReentrantLockLearnsThatItHoldsIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, anonymous)
	lock := c.NewNonReentrantLock("order")
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
