package unreleased

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"holdfast/rlock"
)

func lost2(t *testing.T, lock rlock.Locker) {
	hold, err := lock.Lock(t.Context(), rlock.Lease(lease)) // want `hold is not released`
	require.NoError(t, err)
	require.True(t, hold.Valid())
}

func busy(t *testing.T, lock rlock.Locker) {
	_, err := lock.Lock(t.Context(), rlock.Lease(lease))
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	_, err = lock.Lock(t.Context(), rlock.Lease(lease))
	if !errors.Is(err, rlock.ErrNotAcquired) {
		t.Fatal(err)
	}
	hold, err := lock.Lock(t.Context(), rlock.Lease(lease))
	require.Error(t, err)
	require.Nil(t, hold)
}

func ended(t *testing.T, lock rlock.Locker) {
	hold, err := lock.Lock(t.Context(), rlock.Lease(lease))
	require.NoError(t, err)
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
}

func cleaned(t *testing.T, lock rlock.Locker) *rlock.Hold {
	hold, err := lock.Lock(t.Context(), rlock.Lease(lease))
	require.NoError(t, err)
	require.NotNil(t, hold)
	t.Cleanup(func() { require.NoError(t, hold.Unlock()) })
	return hold
}

func byTB(t testing.TB, lock rlock.Locker) {
	hold, err := lock.Lock(t.Context(), rlock.Lease(lease))
	if err != nil {
		t.Fatal(err)
	}
	if hold.Token() != 0 {
		t.Fatal("a token")
	}
	if err := hold.Unlock(); err != nil {
		t.Error(err)
	}
}
