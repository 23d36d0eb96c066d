package undeferred

import (
	"testing"

	"example.com/shop"
	"github.com/stretchr/testify/require"
	"holdfast/rlock"
)

func stepByStep(t *testing.T, lock rlock.Locker) {
	hold, err := lock.Lock(t.Context(), rlock.Watchdog)
	require.NoError(t, err)
	shop.Ship(hold.Context())
	require.NoError(t, hold.Unlock())
}
