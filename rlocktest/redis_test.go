package rlocktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBusyLockIsNotAcquiredUntilItIsFreed(t *testing.T) {
	redis := rlocktest.New(t)
	lock := redis.Client().NewLock("order:42")
	free := redis.Busy("order:42")
	_, err := lock.TryLock(t.Context(), rlock.NoWait, time.Minute)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, "stranger:1", held.Owner)
	require.InDelta(t, 30*time.Second, held.TTL, float64(5*time.Second))
	done := make(chan error, 1)
	go func() {
		done <- rlock.Do(context.Background(), lock, time.Minute, rlock.Watchdog,
			func(context.Context) error { return nil })
	}()
	redis.AwaitWaiter("order:42")
	free()
	require.NoError(t, <-done)
}

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
