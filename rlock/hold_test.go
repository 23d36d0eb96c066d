package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

type contextKey struct{}

func TestContextOfAHoldCarriesTheOwnerAndTheCallersValues(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		hold := takeWith(context.WithValue(t.Context(), contextKey{}, "value"), t, lock,
			rlock.Watchdog)
		ctx := hold.Context()
		require.Equal(t, "value", ctx.Value(contextKey{}))
		held, err := lock.IsHeld(ctx)
		require.NoError(t, err)
		require.True(t, held)
		require.Equal(t, ctx, hold.Context(), "a hold has one context")
	})
}

func TestContextOfAHoldEndsWithUnlock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		outer := take(t, lock, rlock.Watchdog)
		inner := takeWith(outer.Context(), t, lock, rlock.Watchdog)
		ctx, done := inner.Context(), inner.Done()
		require.NoError(t, ctx.Err())

		unlock(t, inner)
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.Equal(t, rlock.ErrReleased, context.Cause(ctx))
		require.Equal(t, rlock.ErrReleased, inner.Err())
		receive(t, done, "Done is not closed")
		require.False(t, inner.Valid())
		require.NoError(t, outer.Context().Err(), "the outer level is held")
		unlock(t, outer)
	})
}

// The channel and the context are first requested after the end.
func TestEndedHoldHasAnEndedContext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	withoutNesting(t, func(t *testing.T, k kind) {
		hold := take(t, k.lock(newClient(t, s, rlock.Options{}), k.name), rlock.Watchdog)
		unlock(t, hold)
		require.Equal(t, rlock.ErrReleased, context.Cause(hold.Context()))
		receive(t, hold.Done(), "Done is not closed")
	})
}

func TestCancelledCallerStillHoldsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(newClient(t, s, rlock.Options{}), k.name)
		ctx, cancel := context.WithCancel(t.Context())
		hold := takeWith(ctx, t, lock, rlock.Watchdog)
		held := hold.Context()
		cancel()
		require.ErrorIs(t, held.Err(), context.Canceled)
		require.NoError(t, hold.Err())
		require.True(t, hold.Valid())
		require.Empty(t, hold.Done())
		require.Equal(t, k.hash(hold.Owner(), 1), s.DoMap(t, "HGETALL", k.name))
		require.NoError(t, hold.Unlock(ctx), "unlock works on an ended context")
		requireFree(t, s, k.name)
	})
}

func TestHoldKnowsItsNameOwnerAndToken(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		client := newClient(t, s, rlock.Options{})
		lock := k.lock(client, "order:42 "+k.name)
		hold := take(t, lock, time.Minute)
		require.Equal(t, "order:42 "+k.name, hold.Name())
		require.Contains(t, hold.Owner(), client.ID()+":")
		require.Equal(t, k.hash(hold.Owner(), 1), s.DoMap(t, "HGETALL", "order:42 "+k.name))
		if !k.fenced {
			require.Zero(t, hold.Token())
			return
		}
		require.Positive(t, hold.Token())
		require.Equal(t, hold.Token(), takeWith(hold.Context(), t, lock, time.Minute).Token())
	})
}
