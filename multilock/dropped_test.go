package multilock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// dropping runs f in a function of its own, so that nothing of it stays on the stack.
//
//go:noinline
func dropping(f func()) { f() }

// acquire acquires a lock. Unlike take it does not keep the hold.
func acquire(ctx context.Context, t *testing.T, l rlock.Locker) *rlock.Hold {
	t.Helper()
	hold, err := l.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	require.NoError(t, err)
	return hold
}

// contextOf returns the context of a hold that nobody has.
//
//go:noinline
func contextOf(t *testing.T, l rlock.Locker) context.Context {
	return acquire(t.Context(), t, l).Context()
}

func TestDroppedHoldIsLoggedAndNotRenewed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, drop := range map[string]func(context.Context, *multilock.Lock){
		"hold": func(ctx context.Context, l *multilock.Lock) {
			acquire(ctx, t, l)
		},
		"hold, context and owner": func(ctx context.Context, l *multilock.Lock) {
			acquire(rlock.WithOwner(ctx), t, l).Context()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log logtest.Lines
			c := newClient(t, s, rlock.Options{WatchdogLease: 3 * time.Second, Logger: log.Logger()})
			a, b := c.NewFairLock(name+" a"), multilock.NewOn(c, name+" b", name+" c")
			ctx, end := context.WithCancel(t.Context()) // lasts longer than the hold
			defer end()
			dropping(func() { drop(ctx, multilock.New(a, b)) })
			eventually(t, func() bool {
				runtime.GC()
				return len(log.With("a hold was dropped without Unlock")) == 3
			}, "not noticed")
			eventually(t, func() bool { return len(log.With(" lost: ")) > 0 }, "is renewed")
		})
	}
}

func TestHoldThatSomebodyHasIsNotDropped(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{WatchdogLease: 3 * time.Second, Logger: log.Logger()})
	lock := multilock.NewOn(c, "a", "b")
	held := contextOf(t, lock)
	before := s.CommandStats(t)["hexists"]
	eventually(t, func() bool {
		runtime.GC()
		return s.CommandStats(t)["hexists"] >= before+6 // three renewals
	}, "not renewed")
	require.NoError(t, lock.Unlock(held))
	closeClient(t, c)
	require.Empty(t, log.With(""))
}

func TestLeftMultiLockStays(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{Logger: log.Logger()})
	lock := multilock.NewOn(c, "a", "b")
	hold := take(t, lock, longLease)
	ctx := hold.Context()
	hold.Leave()
	require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
	require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
	require.EqualValues(t, 2, s.DoInt(t, "EXISTS", "a", "b"))
	closeClient(t, c)
	require.Empty(t, log.With(""))
}
