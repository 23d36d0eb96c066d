package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// These tests are about what errors and the log say about who holds a lock, and about mistakes.

// stranger is an owner of a client of another process, and strangerKey says who that is.
const (
	stranger    = "0c4a1d1e-6f5a-4b7c-9c3f-5f3b0d9c2a11:7"
	strangerKey = "holdfast_client:{0c4a1d1e-6f5a-4b7c-9c3f-5f3b0d9c2a11}"
)

// asHeldError returns the HeldError in err.
func asHeldError(t testing.TB, err error) *rlock.HeldError {
	t.Helper()
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	return held
}

func TestWaiterLearnsWhoHoldsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "order", stranger, "1")
	s.Do(t, "PEXPIRE", "order", "600000")
	s.Do(t, "HSET", strangerKey, "program", "billing", "host", "web-1", "pid", "4711", "start",
		"1700000000123", "label", "nightly")
	lock := newClient(t, s, rlock.Options{}).NewLock("order")
	try := func(wait time.Duration) *rlock.HeldError {
		_, err := lock.TryLock(t.Context(), wait, longLease)
		return asHeldError(t, err)
	}
	held := try(rlock.NoWait)
	require.Zero(t, held.Holder)
	require.Contains(t, held.Error(), "held by "+stranger+" for another")
	held = try(3 * time.Second)
	require.Equal(t, rlock.Identity{Program: "billing", Host: "web-1", PID: 4711,
		Start: time.UnixMilli(1700000000123), Label: "nightly"}, held.Holder)
	require.Contains(t, held.Error(),
		"held by "+stranger+" (host web-1, pid 4711, nightly) for another 9m")
	require.False(t, held.SameProcess)
	require.Equal(t, held.Holder, try(rlock.NoWait).Holder, "it is known from now on")

	s.Do(t, "DEL", "order")
	gone := newClient(t, s, rlock.Options{})
	take(t, gone.NewLock("order"), longLease)
	require.True(t, try(rlock.NoWait).SameProcess)
	closeClient(t, gone)
	require.False(t, try(rlock.NoWait).SameProcess)
}

func TestHolderIsLookedUpOnceByWaitersThatHaveWaitedForASecond(t *testing.T) {
	t.Parallel()
	inBubble(t, rlock.Options{WatchdogLease: 3 * time.Second}, func(t *testing.T, b *bubble) {
		b.reply("acquire.lua", heldFor(30_000))
		b.reply("identity.lua", func([]string) any {
			if len(b.called("identity.lua")) == 1 {
				return errors.New("ERR not now") // it is asked again after a lease
			}
			return []any{"host", "web-1", "pid", "4711"}
		})
		_, err := b.lock.TryLock(t.Context(), 999*time.Millisecond, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Empty(t, b.called("identity.lua"))
		ctx, cancel := context.WithCancel(t.Context())
		var waiters []<-chan outcome
		for range 20 {
			waiters = append(waiters, lockInBackground(ctx, b.lock, longLease))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, b.called("identity.lua"), 1)
		time.Sleep(10 * time.Minute)
		require.Len(t, b.called("identity.lua"), 2)
		cancel()
		for _, waiter := range waiters {
			require.Contains(t, asHeldError(t, result(t, waiter).Err).Error(),
				"another:7 (host web-1, pid 4711)")
		}
	})
}

// heldBy lets the server refuse the lock from now on.
func (b *bubble) heldBy(hold *rlock.Hold) {
	b.reply("acquire.lua", func(args []string) any {
		reply := heldFor(30_000)(args).([]any)
		reply[1] = hold.Owner()
		return reply
	})
}

// The mistake: a nested Lock with the caller's context instead of the hold's.
func TestLongWaitForAHolderOfThisProcessIsLoggedOnce(t *testing.T) {
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		outer := take(t, b.lock, rlock.Watchdog)
		b.heldBy(outer)
		ctx, stop := context.WithTimeout(t.Context(), 29*time.Second)
		defer stop()
		_, err := b.lock.Lock(ctx, longLease)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "pass its hold.Context() down")
		require.Empty(t, log.With(""))

		_, err = b.lock.TryLock(t.Context(), 10*time.Minute, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		require.Len(t, log.With(""), 1)
		require.Contains(t, log.With("for longer than Options.WatchdogLease")[0],
			"pass its hold.Context() down")
		unlock(t, outer)
	})
}

func TestGoroutineThatWaitsForItselfIsLoggedAtOnceWithDebug(t *testing.T) {
	t.Parallel()
	for _, debug := range []bool{true, false} {
		var log logtest.Lines
		inBubble(t, rlock.Options{Debug: debug, Logger: log.Logger()}, func(t *testing.T, b *bubble) {
			hold := take(t, b.lock, longLease)
			b.heldBy(hold)
			try := func() (*rlock.Hold, error) {
				return b.lock.TryLock(t.Context(), 500*time.Millisecond, longLease)
			}
			require.ErrorIs(t, result(t, inBackground(try)).Err, rlock.ErrNotAcquired)
			require.Empty(t, log.With("holds itself"), "another goroutine")
			_, err := try()
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			unlock(t, hold)
		})
		lines := log.With("holds itself")
		require.Equal(t, debug, len(lines) == 1, lines)
		if debug {
			require.Contains(t, lines[0], "pass its hold.Context() down")
			require.Regexp(t, `waiter="?\S+diagnoses_test\.go:\d+`, lines[0])
		}
	}
}

// What was found dropped is still lost when Redis says so, and a caller that waits learns of it.
func TestHoldThatWasFoundDroppedCanBeLost(t *testing.T) {
	var log logtest.Lines
	inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			<-locktest.AcquireUnkept(rlock.WithOwner(t.Context()), t, b.lock).Context().Done()
		}()
		for n := 300; n > 0 && len(log.With("garbage-collected without Unlock")) == 0; n-- {
			runtime.GC()
			time.Sleep(10 * time.Second) // until a renewal
		}
		_, err := b.lock.ForceUnlock(t.Context())
		require.NoError(t, err)
		<-ended
	})
}

func TestFairLocksThatShareAQueueAreReportedOncePerPair(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{Logger: log.Logger()})
	use := func(names ...string) {
		for _, name := range names {
			unlock(t, take(t, c.NewFairLock(name), rlock.Lease(time.Minute)))
		}
	}
	use("x", "x", "y", "{z}", "{x}y", "{{x}}", "{x", "x}")
	unlock(t, take(t, c.NewLock("{x}"), rlock.Lease(time.Minute))) // which has no queue
	use("a")
	require.Empty(t, log.With("share one queue"))
	use("{x}", "z", "{x}", "x", "{z}", "z")
	closeClient(t, c) // waits for pending log lines
	warnings := log.With("share one queue")
	require.Len(t, warnings, 2, "x and {x}, {z} and z")
	require.Contains(t, warnings[0], "redisson_lock_queue:{x}")
}
