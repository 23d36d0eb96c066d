package rlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

// These tests are about who gets the lock while others hand it over among themselves.

// contend has that many goroutines lock and unlock until the returned function is called. section
// runs under the lock, alone.
func contend(
	t *testing.T, goroutines int, lock rlock.Locker, section func(*rlock.Hold),
) (enough func()) {
	t.Helper()
	var over atomic.Bool
	var work sync.WaitGroup
	for range goroutines {
		work.Go(func() {
			for !over.Load() {
				hold, err := lock.Lock(context.Background(), rlock.Watchdog)
				if err != nil {
					t.Errorf("lock: %v", err)
					return
				}
				section(hold)
				if err := hold.Unlock(context.Background()); err != nil {
					t.Errorf("unlock: %v", err)
					return
				}
			}
		})
	}
	return func() {
		over.Store(true)
		work.Wait()
	}
}

// turns records who held a lock, in order. Only that lock guards it, so that the race detector sees
// two holders.
type turns struct{ of []int }

func (ts *turns) take(who int) func(*rlock.Hold) {
	return func(*rlock.Hold) { ts.of = append(ts.of, who) }
}

// foreigner waits for plain locks as Redisson does: without registration, trying when it hears that
// the lock is free.
type foreigner struct {
	server   *redistest.Server
	lock     string
	listener *listener
}

const foreignOwner = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:7"

// takeTurn acquires the lock and releases it, and returns how many announcements that took.
func (f *foreigner) takeTurn(t *testing.T) (announcements int) {
	t.Helper()
	redis := f.server.Client(t)
	for {
		plain := lua.NewExclusive(f.lock, false)
		_, _, holder, err := plain.Acquire(t.Context(), redis, foreignOwner, 30*time.Second, "")
		require.NoError(t, err)
		if holder == nil {
			break
		}
		f.listener.next(t)
		announcements++
	}
	plain := lua.NewExclusive(f.lock, false)
	_, err := plain.Release(t.Context(), redis, foreignOwner, 0, lua.HandOver{})
	require.NoError(t, err)
	return announcements
}

func TestWaiterOfRedissonGetsTheLockAmongHandOvers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, k := range givenAway() {
		var history turns
		var stop []func()
		for i := range 2 {
			stop = append(stop,
				contend(t, 8, k.lock(newClient(t, s, rlock.Options{}), k.name), history.take(i)))
		}
		// It comes in the middle of that.
		waitForListeners(t, s, k.name, 2)
		f := &foreigner{s, k.name, listen(t, s, channelOf(k.name))}
		for turn := range 5 {
			start := time.Now()
			announcements := f.takeTurn(t)
			require.Less(t, time.Since(start), longWait/2, "turn %d, after %d announcements", turn,
				announcements)
		}
		for _, enough := range stop {
			enough()
		}
		waitUntilFree(t, s, k.name)
	}
}
