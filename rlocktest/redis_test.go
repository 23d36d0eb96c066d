package rlocktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTimePassesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		lock := redis.Client().NewLock("order:42")
		hold, err := lock.Lock(t.Context(), rlock.Watchdog)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Unlock(t.Context()))
		redis.BusyFor("order:42", time.Minute)
		start := time.Now()
		hold, err = lock.Lock(t.Context(), 30*time.Second)
		require.NoError(t, err)
		require.Less(t, time.Since(start)-time.Minute, time.Second)
		time.Sleep(30 * time.Second)
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	})
}
