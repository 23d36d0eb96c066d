//go:build redis

package multilock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

func TestDroppedHoldIsReportedOnceAndGoesOnBeingRenewed(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(context.Context, *multilock.Lock){
		"hold": func(ctx context.Context, l *multilock.Lock) {
			locktest.AcquireUnkept(ctx, t, l)
		},
		"hold, context and owner": func(ctx context.Context, l *multilock.Lock) {
			locktest.AcquireUnkept(rlock.WithOwner(ctx), t, l).Context()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log logtest.Lines
			s := redistest.Start(t)
			c := newClient(t, s, rlock.Options{WatchdogLease: 3 * time.Second, Debug: true,
				Logger: log.Logger()})
			a, b := c.NewFairLock(name+" a"), multilock.NewOn(c, name+" b", name+" c")
			ctx, end := context.WithCancel(t.Context()) // lasts longer than the hold
			defer end()
			locktest.Dropping(func() { drop(ctx, multilock.New(a, b)) })
			eventually(t, func() bool {
				runtime.GC()
				return len(log.With("a hold was dropped without Unlock")) > 0
			}, "not noticed")
			before := s.CommandStats(t)["hexists"]
			eventually(t, func() bool {
				return s.CommandStats(t)["hexists"] >= before+9 // three renewals
			}, "not renewed")
			require.Len(t, log.With(""), 1)
			require.Contains(t, log.With("")[0], `lock="`+name+` a+`+name+` b+`+name+` c"`)
			require.Regexp(t, `acquired at .*\.go:\d+`, log.With("")[0])
		})
	}
}

func TestHoldThatSomebodyHasIsNotDropped(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{WatchdogLease: 3 * time.Second, Logger: log.Logger()})
	lock := multilock.NewOn(c, "a", "b")
	held := locktest.ContextOf(t, lock)
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
