package rlocktest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
	"holdfast/rlocktest"
)

// kinds has a lock of each kind.
var kinds = map[string]func(c *rlock.Client) *rlock.Lock{
	"plain":        func(c *rlock.Client) *rlock.Lock { return c.NewLock("order:42") },
	"fair":         func(c *rlock.Client) *rlock.Lock { return c.NewFairLock("order:42") },
	"fenced":       func(c *rlock.Client) *rlock.Lock { return c.NewFencedLock("order:42") },
	"nonreentrant": func(c *rlock.Client) *rlock.Lock { return c.NewNonReentrantLock("order:42") },
	"nonreentrant fair": func(c *rlock.Client) *rlock.Lock {
		return c.NewNonReentrantFairLock("order:42")
	},
	"read": func(c *rlock.Client) *rlock.Lock {
		return c.NewReadWriteLock("order:42").Read()
	},
	"write": func(c *rlock.Client) *rlock.Lock {
		return c.NewReadWriteLock("order:42").Write()
	},
}

func onEveryKind(t *testing.T, test func(t *testing.T, redis *rlocktest.Redis, lock *rlock.Lock)) {
	t.Helper()
	for name, of := range kinds {
		t.Run(name, func(t *testing.T) {
			redis := rlocktest.New(t)
			test(t, redis, of(redis.Client()))
		})
	}
}

func TestStrangerKeepsEverybodyOutUntilItIsFreed(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, redis *rlocktest.Redis, lock *rlock.Lock) {
		free := redis.Busy("order:42")
		_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
		var held *rlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "stranger:1", held.Owner)
		require.InDelta(t, 30*time.Second, held.TTL, float64(time.Second))

		waiter := locktest.LockInBackground(t.Context(), lock, rlock.Lease(time.Minute))
		redis.AwaitWaiter("order:42")
		start := time.Now()
		free()
		hold := locktest.Acquired(t, waiter)
		require.Less(t, time.Since(start), 2*time.Second, "the waiter was not told")
		free() // takes nothing from anybody
		require.NoError(t, hold.Unlock())
	})
}

func TestStrangerRenewsItsLeaseUnlessItHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		lock := redis.Client().NewLock("order:42")
		free := redis.Busy("order:42")
		time.Sleep(time.Hour)
		locked, err := lock.IsLocked(t.Context())
		require.NoError(t, err)
		require.True(t, locked)
		free()

		redis.BusyFor("order:42", time.Minute)
		start := time.Now()
		hold, err := lock.Lock(t.Context(), rlock.Lease(time.Minute))
		require.NoError(t, err)
		require.InDelta(t, time.Minute, time.Since(start), float64(50*time.Millisecond))
		require.NoError(t, hold.Unlock())
	})
}

func TestLostLockEndsItsHoldsAtOnceAndIsFree(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, redis *rlocktest.Redis, lock *rlock.Lock) {
		hold, err := lock.Lock(t.Context(), rlock.Watchdog)
		require.NoError(t, err)
		other, err := redis.Client().NewLock("other").Lock(t.Context(), rlock.Lease(time.Minute))
		require.NoError(t, err)
		redis.Lose("order:42")
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrGone)
		require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
		require.NoError(t, other.Unlock())
		hold, err = lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
	})
}

// A program that waits for less than the client pauses would fail by chance after Up.
func TestServerThatIsUpAgainIsReachedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := rlocktest.New(t)
		lock := redis.Client().NewLock("order:42")
		for range 5 {
			redis.Down()
			for range 10 { // the pauses get longer
				_, err := lock.TryLock(t.Context(), 50*time.Millisecond, rlock.Lease(time.Minute))
				require.Error(t, err)
			}
			redis.Up()
			hold, err := lock.TryLock(t.Context(), 10*time.Millisecond, rlock.Lease(time.Minute))
			require.NoError(t, err)
			require.NoError(t, hold.Unlock())
		}
	})
}

func TestAdvanceEndsLeasesOnTheServer(t *testing.T) {
	t.Parallel()
	onEveryKind(t, func(t *testing.T, redis *rlocktest.Redis, lock *rlock.Lock) {
		short, err := lock.Lock(t.Context(), rlock.Lease(10*time.Second))
		require.NoError(t, err)
		long, err := redis.Client().NewLock("long").Lock(t.Context(), rlock.Lease(time.Hour))
		require.NoError(t, err)
		redis.BusyFor("busy", 10*time.Second)
		waiter := locktest.LockInBackground(
			t.Context(),
			redis.Client().NewLock("busy"),
			rlock.Lease(time.Minute),
		)
		redis.AwaitWaiter("busy")
		redis.Advance(20 * time.Second)
		require.ErrorIs(t, short.Err(), rlock.ErrLost)
		require.NoError(t, long.Unlock())
		require.NoError(t, locktest.Acquired(t, waiter).Unlock())
	})
}

func TestSeveralServersMakeARedLockAndAMultiLock(t *testing.T) {
	t.Parallel()
	var clients []*rlock.Client
	var servers []*rlocktest.Redis
	for range 3 {
		servers = append(servers, rlocktest.New(t))
		clients = append(clients, servers[len(servers)-1].Client())
	}
	lock := redlock.NewOn("order:42", redlock.Options{}, clients...)
	hold, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(20*time.Second))
	require.NoError(t, err)
	servers[0].Down()
	require.NoError(t, hold.Err())
	servers[0].Up()
	require.NoError(t, hold.Unlock())

	both := multilock.New(clients[0].NewLock("a"), clients[1].NewLock("a"))
	hold, err = both.TryLock(t.Context(), rlock.NoWait, rlock.Lease(20*time.Second))
	require.NoError(t, err)
	servers[1].Lose("a")
	<-hold.Done()
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
}

func TestRedLockThatIsNotReleasedFailsTheTest(t *testing.T) {
	t.Parallel()
	errors := rehearse(t, func(t testing.TB, redis *rlocktest.Redis) {
		_, err := redlock.NewOn("order:42", redlock.Options{}, redis.Client()).
			TryLock(t.Context(), rlock.NoWait, rlock.Lease(20*time.Second))
		require.NoError(t, err)
	})
	requireProblems(t, errors, []string{`"order:42": not released`, "trouble_test.go:"})
}
