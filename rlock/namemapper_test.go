package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

func TestNameMapperMapsTheNamesOfAllKinds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	mapped := newClient(t, s, rlock.Options{NameMapper: rlock.Prefix("app:")})
	plain := newClient(t, s, rlock.Options{})
	withoutNesting(t, func(t *testing.T, k kind) {
		lock := k.lock(mapped, k.name)
		require.Equal(t, "app:"+k.name, lock.Name())
		hold := take(t, lock, longLease)
		require.Equal(t, "app:"+k.name, hold.Name())
		require.EqualValues(t, 1, s.DoInt(t, "EXISTS", "app:"+k.name))
		_, err := k.contender(plain, "app:"+k.name).TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.ErrorContains(t, err, "app:"+k.name)
		unlock(t, hold)
	})
	both := take(t, multilock.NewOn(mapped, "a", "b"), longLease)
	require.Equal(t, "app:a+app:b", both.Name())
	unlock(t, both)
	_, err := mapped.NewLock("").Lock(t.Context(), longLease)
	require.ErrorIs(t, err, rlock.ErrInvalid)
}

func TestRegisteredWaiterOfAMappedNameGetsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	options := rlock.Options{NameMapper: rlock.Prefix("app:")}
	here, there := newClient(t, s, options), newClient(t, s, options)
	hold := take(t, here.NewLock("order"), longLease)
	waiting := lockInBackground(t.Context(), there.NewLock("order"), longLease)
	eventually(t, func() bool { return registrations(s, "app:order") == 1 }, "it does not register")
	unlock(t, hold)
	unlock(t, acquired(t, waiting))
}
