package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/multilock"
	"holdfast/rlock"
)

type contextKey struct{}

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
