//go:build redis

package redlock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestDroppedHoldIsReportedOnceAndGoesOnBeingRenewed(t *testing.T) {
	t.Parallel()
	var log logtest.Lines
	servers, clients := startFive(t, rlock.Options{WatchdogLease: 3 * time.Second, Debug: true,
		Logger: log.Logger()})
	l := redlock.NewOn(name, atOnce, clients...)
	ctx, end := context.WithCancel(t.Context()) // lasts longer than the hold
	defer end()
	for i, drop := range []func(){
		func() { locktest.AcquireUnkept(rlock.WithOwner(ctx), t, l) },
		func() { locktest.AcquireUnkept(ctx, t, l).Context() },
	} {
		locktest.Dropping(drop)
		eventually(t, func() bool {
			runtime.GC()
			return len(log.With("a hold was dropped without Unlock")) > i
		}, "not noticed")
		before := servers[0].CommandStats(t)["hexists"]
		eventually(t, func() bool {
			return servers[0].CommandStats(t)["hexists"] >= before+3 // three renewals
		}, "not renewed")
		dropped := log.With("a hold was dropped without Unlock")
		require.Len(t, dropped, i+1)
		require.Regexp(t, `acquired at .*\.go:\d+" lock=`+name, dropped[i])
		require.Len(t, log.With(""), 2*i+1, "it is lost, after the first was freed by force")
		for _, s := range servers {
			s.Do(t, "DEL", name)
		}
		eventually(t, func() bool { return len(log.With(" lost")) > i }, "not lost")
	}
}

func TestHoldThatSomebodyHasIsNotDropped(t *testing.T) {
	t.Parallel()
	var log logtest.Lines
	servers, clients := startFive(t, rlock.Options{WatchdogLease: 3 * time.Second,
		Logger: log.Logger()})
	l := redlock.NewOn(name, atOnce, clients...)
	held := locktest.ContextOf(t, l)
	before := servers[0].CommandStats(t)["hexists"]
	eventually(t, func() bool {
		runtime.GC()
		return servers[0].CommandStats(t)["hexists"] >= before+3 // three renewals
	}, "not renewed")
	require.NoError(t, l.Unlock(held))
	require.Empty(t, log.With("dropped"))
	waitUntilFree(t, servers...)
}

func TestLeftRedLockStays(t *testing.T) {
	t.Parallel()
	var log logtest.Lines
	servers, clients := startFive(t, rlock.Options{Logger: log.Logger()})
	l := redlock.NewOn(name, atOnce, clients...)
	hold := take(t, l, longLease)
	waitUntilHeld(t, servers)
	inner, err := l.TryLock(hold.Context(), rlock.NoWait, longLease)
	require.NoError(t, err)
	inner.Leave()
	require.True(t, hold.Valid())
	ctx := hold.Context()
	hold.Leave()
	require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
	require.ErrorIs(t, l.Unlock(ctx), rlock.ErrNotHeld)
	_, err = l.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.Equal(t, len(servers), count(servers))
	require.Empty(t, log.With(""))
}
