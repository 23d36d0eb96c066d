package multilock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/multilock"
	"holdfast/rlock"
	"holdfast/watchdog"
)

type contextKey struct{}

func TestHoldCoversAllParts(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			hold := takeWith(context.WithValue(t.Context(), contextKey{}, "value"), t, of(locks),
				longLease)
			require.Equal(t, "a+b+c", hold.Name())
			require.Equal(t, []string{hold.Owner()}, p.first.DoStrings(t, "HKEYS", "a"))
			require.NoError(t, hold.Err())
			require.True(t, hold.Valid())
			ctx, done := hold.Context(), hold.Done()
			require.Equal(t, "value", ctx.Value(contextKey{}))
			require.NoError(t, ctx.Err(), "it outlives the acquisition")
			require.Equal(t, ctx, hold.Context())
			select {
			case <-done:
				require.FailNow(t, "it has ended")
			default:
			}

			unlock(t, hold)
			requireFree(t, p.first, p.second)
			receive(t, done, "Done is not closed")
			require.Equal(t, rlock.ErrReleased, context.Cause(ctx))
			require.Equal(t, rlock.ErrReleased, hold.Err())
			require.False(t, hold.Valid())
			require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
			require.ErrorIs(t, hold.Extend(t.Context(), longLease), rlock.ErrNotHeld)
		})
	}
}

func TestCancelledCallerHoldsAllPartsUntilUnlock(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			hold := takeWith(ctx, t, of(locks), rlock.Watchdog)
			cancel()
			require.ErrorIs(t, hold.Context().Err(), context.Canceled)
			require.True(t, hold.Valid())
			require.True(t, exists(t, p.first, "a"))
			require.NoError(t, hold.Unlock(ctx))
			requireFree(t, p.first, p.second)
		})
	}
}

func TestHoldEndsWithItsLease(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const lease = time.Second
			var all []*rlock.Lock // with names of their own: the cases run in parallel
			for _, l := range locks {
				if l.Server() == "first" && name == "batch" {
					l = p.client.NewLock("batch " + l.Name())
				}
				all = append(all, l)
			}
			hold := take(t, of(all), lease)
			deadline := hold.Deadline()
			receive(t, hold.Done(), "the lease does not end")
			require.False(t, time.Now().Before(deadline))
			require.ErrorIs(t, hold.Err(), watchdog.ErrExpired)
			require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
			// A part whose margin is over is not kept for longer than its lease.
			for _, l := range all {
				eventually(t, func() bool {
					held, err := l.IsLocked(t.Context())
					return err == nil && !held
				}, l.Name()+" is free")
			}
		})
	}
}

func TestHoldEndsWhenAClientOfItsPartsIsClosed(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			mine, another := p.clients(t, rlock.Options{})
			hold := take(t, of(shapes(&pair{client: mine, another: another})[name]), rlock.Watchdog)
			ctx := hold.Context()
			closeClient(t, mine)
			receive(t, hold.Done(), "the hold goes on")
			require.Equal(t, rlock.ErrClosed, hold.Err())
			receive(t, ctx.Done(), "the context goes on")
			require.Equal(t, rlock.ErrClosed, context.Cause(ctx))
			require.ErrorIs(t, hold.Extend(t.Context(), longLease), rlock.ErrClosed)
			require.NoError(t, hold.Unlock(t.Context()), "what is held can be released after Close")
			requireFree(t, p.first, p.second)
		})
	}
}

func TestDeadlineIsTheEarliestOfItsParts(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	outer := take(t, p.client.NewFairLock("a"), longLease)
	middle := takeWith(outer.Context(), t, p.client.NewFairLock("b"), time.Minute)
	hold := takeWith(outer.Context(), t,
		multilock.New(p.client.NewFairLock("a"), p.client.NewFairLock("b")), 10*time.Second)
	require.Equal(t, middle.Deadline(), hold.Deadline())
	unlock(t, middle)
	require.NoError(t, hold.Extend(t.Context(), 2*time.Minute))
	require.Greater(t, time.Until(hold.Deadline()), time.Minute)
	require.Less(t, time.Until(hold.Deadline()), 2*time.Minute)
	require.True(t, outer.Deadline().After(hold.Deadline()))
	unlock(t, hold)
	unlock(t, outer)
	requireFree(t, p.first)
}

func TestTokenIsThatOfTheOnlyFencedPart(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	p.first.Do(t, "SET", "redisson_lock_token:{f}", "41")
	for name, c := range map[string]struct {
		lock *multilock.Lock
		want int64
	}{
		"one": {multilock.New(
			p.client.NewLock("a"), p.client.NewFencedLock("f"), p.another.NewLock("a")), 42},
		"none": {multilock.New(p.client.NewLock("a"), p.another.NewLock("a")), 0},
		"two":  {multilock.New(p.client.NewFencedLock("g"), p.another.NewFencedLock("f")), 0},
	} {
		hold := take(t, c.lock, longLease)
		require.Equal(t, c.want, hold.Token(), name)
		inner := takeWith(hold.Context(), t, c.lock, longLease)
		require.Equal(t, c.want, inner.Token(), name)
		unlock(t, inner)
		unlock(t, hold)
	}
	requireFree(t, p.first, p.second)
}

func TestExtendExtendsAllPartsAndShortensNone(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	for name, locks := range shapes(p) {
		t.Run(name, func(t *testing.T) {
			hold := take(t, of(locks), 10*time.Second)
			require.NoError(t, hold.Extend(t.Context(), time.Minute))
			require.Greater(t, time.Until(hold.Deadline()), 50*time.Second)
			deadline := hold.Deadline()
			require.NoError(t, hold.Extend(t.Context(), time.Second))
			require.Equal(t, deadline, hold.Deadline())
			for _, l := range locks {
				left, err := l.TTL(t.Context())
				require.NoError(t, err)
				require.Greater(t, left, 50*time.Second, l.Name())
			}
			require.ErrorIs(t, hold.Extend(t.Context(), time.Millisecond), rlock.ErrInvalid)

			p.first.Do(t, "DEL", "b") // behind everyone's back
			err := hold.Extend(t.Context(), 2*time.Minute)
			require.ErrorIs(t, err, rlock.ErrLost)
			require.ErrorContains(t, err, `lock "b" lost`)
			require.ErrorIs(t, hold.Err(), rlock.ErrLost)
			require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
			requireFree(t, p.first, p.second)
		})
	}
}

// One line is logged for the part. None is logged for the whole: no client knows of it.
func TestLossIsReportedOnce(t *testing.T) {
	t.Parallel()
	var log logtest.Lines
	p := startPair(t, rlock.Options{Logger: log.Logger()})
	hold := take(t, of(shapes(p)["batch"]), longLease)
	forceUnlock(t, p.client.NewLock("b"))
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	eventually(t, func() bool { return len(log.With("lost")) > 0 }, "the loss is reported")
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	require.Len(t, log.With("lost"), 1)
}

func TestDoRunsUnderAllParts(t *testing.T) {
	t.Parallel()
	p := startPair(t, rlock.Options{})
	lock := of(shapes(p)["one by one"])
	failure := errors.New("the work failed")
	err := rlock.Do(t.Context(), lock, rlock.NoWait, longLease, func(ctx context.Context) error {
		require.True(t, exists(t, p.second, "c"))
		_, err := lock.TryLock(ctx, rlock.NoWait, longLease)
		require.NoError(t, err)
		require.NoError(t, lock.Unlock(ctx))
		return failure
	})
	require.ErrorIs(t, err, failure)
	requireFree(t, p.first, p.second)
}
