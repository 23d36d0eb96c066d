package rlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestClientForgetsClosedClientsOfItsProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lasting := newClient(t, s, rlock.Options{})
	x := take(t, lasting.NewLock("x"), longLease)
	for range 3 {
		short := newClient(t, s, rlock.Options{})
		_, err := short.NewLock("x").Lock(x.Context(), longLease) // they meet
		require.ErrorIs(t, err, rlock.ErrDeadlock)
		require.Equal(t, 1, rlock.Peers(lasting))
		closeClient(t, short)
		require.Zero(t, rlock.Peers(lasting))
	}
	unlock(t, x)
}
