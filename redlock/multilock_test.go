//go:build !race

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestRedLockIsAPartOfAMultiLock(t *testing.T) {
	t.Parallel()
	inWorld(t, 4, rlock.Options{}, func(t *testing.T, w *world) {
		quorum := redlock.NewOn(name, atOnce, w.clients[:3]...)
		both := multilock.New(w.clients[3].NewLock("alone"), quorum)
		hold := take(t, both, rlock.Watchdog)
		require.Equal(t, "alone+"+name, hold.Name())
		_, err := quorum.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		nested := takeWith(hold.Context(), t, both, longLease)
		require.NoError(t, nested.Extend(t.Context(), 2*longLease))
		require.NoError(t, both.Unlock(nested.Context()))
		give(t, w.Servers[0], w.Servers[2])
		time.Sleep(20 * time.Second)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.ErrorContains(t, hold.Err(), `lock "`+name+`": lost: held on 1 of 3 nodes`)
		require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
		require.Equal(t, 2, w.held(t), "only by the others")
	})
}
