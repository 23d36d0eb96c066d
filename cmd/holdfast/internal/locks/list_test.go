package locks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// java is an owner as Redisson names it, with the id of a thread.
const java = "8743c9c0-0795-4907-87fd-6c719a6b4586:54"

func newLocks(t *testing.T, redis rueidis.Client) *rlock.Client {
	t.Helper()
	c, err := rlock.New(redis, rlock.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.WithoutCancel(t.Context()))) })
	return c
}

func lockIt(t *testing.T, l *rlock.Lock) *rlock.Hold {
	t.Helper()
	hold, err := l.Lock(t.Context(), rlock.Watchdog)
	require.NoError(t, err)
	t.Cleanup(func() { _ = hold.Unlock(context.WithoutCancel(t.Context())) })
	return hold
}

func list(t *testing.T, redis rueidis.Client, q locks.Query) map[string]locks.Lock {
	t.Helper()
	all := map[string]locks.Lock{}
	for lock, err := range locks.List(t.Context(), redis, q) {
		require.NoError(t, err)
		require.NotContains(t, all, lock.Name)
		all[lock.Name] = lock
	}
	return all
}

func TestListFindsLocksOfAllKinds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redis := s.Client(t)
	c := newLocks(t, redis)
	lockIt(t, c.NewLock("plain"))
	lockIt(t, c.NewFencedLock("fenced"))
	lockIt(t, c.NewFairLock("fair"))
	lockIt(t, c.NewReadWriteLock("read").Read())
	lockIt(t, c.NewReadWriteLock("write").Write())
	s.Do(t, "HSET", "java", java, "2")
	s.Do(t, "HSET", "map", "colour", "green")
	s.Do(t, "HSET", "counters", java, "two")
	s.Do(t, "SET", "text", "x")
	s.Do(t, "RPUSH", "redisson_lock_queue:{free}", java)
	all := list(t, redis, locks.Query{})
	fmt.Println(all)
	require.Len(t, all, 7)
	_ = slices.Sorted[string]
	_ = strings.Join
	_ = time.Second
	for name := range all {
		one, err := locks.Inspect(t.Context(), redis, name)
		require.NoError(t, err)
		fmt.Printf("%+v\n", one)
	}
}
