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
	// turn is how long one who joins others that contend without a pause may wait. They are many, and a release that is
	// announced to all is for the fastest; so it has several chances in that time.
	turn = 5 * time.Second
	// turns is how often it joins.
	turns = 3
)

// Clients of this library pass a lock on to each other, so that it is never free. A waiter of Redisson only hears when it is
// announced.
func waiterOfRedissonGetsItsTurnAmongHandOvers(t *testing.T, s *site) {
	for _, kind := range []string{reentrant, fenced} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := both(kind).hold
			java := newJavaActor(t, s)
			stop := contend(t, l, append(newGoActors(t, s, rlock.HandOverToAll, 4), newGoActors(t, s, rlock.HandOverToAll, 4)...))
			waiters := lua.Prefix("holdfast_lock_waiters", l.name())
			for range turns {
				// Now it goes from client to client, and is announced to nobody.
				locktest.Eventually(t, func() bool { return s.node(t, waiters).DoInt(t, "EXISTS", waiters) == 1 }, "nobody has a place")
				requireTurn(t, java, l)
			}
			stop()
			s.requireFree(t, l)
		})
	}
}

// The other way round nothing is handed over: each release is announced, and the waiter has its chance each time.
func waiterOfThisLibraryGetsItsTurnAmongThreadsOfRedisson(t *testing.T, s *site) {
	for _, kind := range []string{reentrant, fenced} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := both(kind).hold
			holdfast := newGoActor(t, s)
			var threads []actor
			for range 8 {
				threads = append(threads, newJavaActor(t, s))
			}
			stop := contend(t, l, threads)
			for range turns {
				requireTurn(t, holdfast, l)
			}
			stop()
			s.requireFree(t, l)
		})
	}
}

// requireTurn requires that an actor gets a lock in bounded time, and gives it back.
func requireTurn(t *testing.T, a actor, l target) {
	t.Helper()
	began := time.Now()
	require.NoError(t, a.tryLock(l, turn, longLease), "no turn within %v", turn)
	t.Logf("its turn came after %v", time.Since(began).Round(time.Millisecond))
	unlock(t, a, l)
}

// contend has actors take a lock and release it without a pause, until the function that it returns is called.
func contend(t *testing.T, l target, actors []actor) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var working []<-chan outcome
	for _, a := range actors {
		working = append(working, inBackground(func() error {
			sections := 0
			for ctx.Err() == nil {
				if err := a.tryLock(l, 2*turn, longLease); err != nil {
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
	t.Cleanup(cancel) // when the test has failed before
	return stop
}
