package recipes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

// try acquires and releases a lock.
func try(t *testing.T, lock rlock.Locker, wait time.Duration) error {
	t.Helper()
	return rlock.Do(t.Context(), lock, wait, rlock.Watchdog,
		func(context.Context) error { return nil })
}

func TestLockOnOneMasterIsExclusive(t *testing.T) {
	redis := rlocktest.New(t)
	lock := orderLock(redis.Client(), "42")
	require.NoError(t, try(t, lock, rlock.NoWait))
	redis.Busy("order:42")
	require.ErrorIs(t, try(t, lock, rlock.NoWait), rlock.ErrNotAcquired)
}

func TestTransferLocksBothAccounts(t *testing.T) {
	for _, busy := range []string{"account:17", "account:42"} {
		redis := rlocktest.New(t)
		lock := transferLock(redis.Client(), "17", "42")
		require.NoError(t, try(t, lock, rlock.NoWait))
		redis.Busy(busy)
		require.ErrorIs(t, try(t, lock, rlock.NoWait), rlock.ErrNotAcquired)
	}
}

func TestClosingOutlastsOneOfThreeMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var masters [3]*rlocktest.Redis
		for i := range masters {
			masters[i] = rlocktest.New(t)
		}
		lock := closingLock(masters[0].Client(), masters[1].Client(), masters[2].Client())
		masters[0].Down()
		require.NoError(t, try(t, lock, time.Second))
		masters[1].Busy("closing")
		require.ErrorIs(t, try(t, lock, time.Second), rlock.ErrNotAcquired)
	})
}
