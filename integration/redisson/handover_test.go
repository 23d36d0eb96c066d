//go:build interop

package redisson_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/lua"
	"holdfast/rlock"
)

const (
	// timeToAcquire bounds the wait of an actor that joins others which contend without a pause.
	// They are many, and a release that is announced to all wakes the fastest, so it has several
	// chances in that time.
	timeToAcquire = 5 * time.Second
	// joins is how often it joins.
	joins = 3
)

// Clients of this library hand a lock over to each other, so that it is never free. A waiter of
// Redisson hears only of announcements.
func waiterOfRedissonGetsItsTurnAmongHandOvers(t *testing.T, s *site) {
	for _, kind := range existing(reentrant, fenced) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := both(kind).hold
			java := newJavaActor(t, s)
			stop := contend(t, l,
				append(newGoActors(t, s, rlock.HandOverAnywhere, 4),
					newGoActors(t, s, rlock.HandOverAnywhere, 4)...))
			waiters := lua.Prefix("holdfast_lock_waiters", l.name())
			for range joins {
				// Now it goes from client to client, and is not announced.
				locktest.Eventually(t, func() bool {
					return s.node(t, waiters).DoInt(t, "EXISTS", waiters) == 1
				}, "no waiter is registered")
				requireAcquires(t, java, l)
			}
			stop()
			s.requireFree(t, l)
		})
	}
}

// The other way round nothing is handed over: each release is announced, so the waiter always has a
// chance.
func waiterOfThisLibraryGetsItsTurnAmongThreadsOfRedisson(t *testing.T, s *site) {
	for _, kind := range existing(reentrant, fenced) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := both(kind).hold
			holdfast := newGoActor(t, s)
			var threads []actor
			for range 8 {
				threads = append(threads, newJavaActor(t, s))
			}
			stop := contend(t, l, threads)
			for range joins {
				requireAcquires(t, holdfast, l)
			}
			stop()
			s.requireFree(t, l)
		})
	}
}

// requireAcquires requires that an actor acquires a lock in bounded time, and releases it.
func requireAcquires(t *testing.T, a actor, l target) {
	t.Helper()
	began := time.Now()
	require.NoError(t, a.tryLock(l, timeToAcquire, longLease), "not acquired within %v",
		timeToAcquire)
	t.Logf("acquired after %v", time.Since(began).Round(time.Millisecond))
	unlock(t, a, l)
}

// contend has actors lock and unlock without a pause, until the returned function is called.
func contend(t *testing.T, l target, actors []actor) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var working []<-chan outcome
	for _, a := range actors {
		working = append(working, inBackground(func() error {
			sections := 0
			for ctx.Err() == nil {
				if err := a.tryLock(l, 2*timeToAcquire, longLease); err != nil {
					return fmt.Errorf("after %d sections: %w", sections, err)
				}
				if err := a.unlock(l); err != nil {
					return err
				}
				sections++
			}
			return nil
		}))
	}
	stop = func() {
		cancel()
		for _, w := range working {
			acquired(t, w)
		}
	}
	t.Cleanup(cancel) // in case the test fails before
	return stop
}
