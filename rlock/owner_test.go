package rlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestEnsureOwnerKeepsAnOwnerThatIsThere(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	require.False(t, rlock.HasOwner(t.Context()))
	ctx := rlock.EnsureOwner(t.Context())
	require.True(t, rlock.HasOwner(ctx))
	lock := c.NewLock("order")
	hold, err := lock.Lock(ctx, longLease)
	require.NoError(t, err)
	require.True(t, rlock.HasOwner(hold.Context()))
	for _, nested := range []context.Context{ctx, rlock.EnsureOwner(ctx), hold.Context(),
		rlock.EnsureOwner(hold.Context())} {
		inner, err := lock.TryLock(nested, rlock.NoWait, longLease)
		require.NoError(t, err, "it is another owner")
		unlock(t, inner)
	}
	unlock(t, hold)
}

func TestWithOwnerReplacesTheOwner(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	lock := c.NewLock("order")
	hold := take(t, lock, longLease)
	_, err := lock.TryLock(rlock.WithOwner(hold.Context()), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	unlock(t, hold)
}

func TestDetachedContextHasNoOwnerAndEndsWithItsParent(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Start(t), rlock.Options{})
	lock := c.NewLock("order")
	hold := take(t, lock, longLease)
	ctx := rlock.Detached(hold.Context())
	require.False(t, rlock.HasOwner(ctx))
	_, err := lock.TryLock(ctx, rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired, "it shares the owner")
	require.True(t, rlock.HasOwner(rlock.EnsureOwner(ctx)))
	unlock(t, hold)
	require.ErrorIs(t, context.Cause(ctx), rlock.ErrReleased)
}

// The mistake: a middleware gives the request an owner, and goroutines below share it.
func TestOverlappingLevelsOfOneOwnerAreLoggedOnce(t *testing.T) {
	t.Parallel()
	for _, debug := range []bool{false, true} {
		var log logtest.Lines
		c := newClient(t, redistest.Start(t), rlock.Options{Logger: log.Logger(), Debug: debug})
		lock := c.NewLock("order")
		request := rlock.WithOwner(t.Context())
		for range 2 {
			first := takeWith(request, t, lock, longLease)
			second := takeWith(request, t, lock, longLease)
			unlock(t, first) // the second goroutine is still inside
			unlock(t, second)
		}
		eventually(t, func() bool { return len(log.With("do not exclude each other")) == 1 }, "no line")
		line := log.With("do not exclude each other")[0]
		if debug {
			require.Regexp(t, `first="acquired at .*locktest.go:\d+`, line)
			require.Regexp(t, `second="acquired at .*locktest.go:\d+`, line)
		} else {
			require.Contains(t, line, "Options.Debug")
		}
		closeClient(t, c)
		require.Len(t, log.With("do not exclude each other"), 1)
	}
}

func TestNestedLevelsAreNotLogged(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var log logtest.Lines
	c := newClient(t, s, rlock.Options{Logger: log.Logger()})
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(c, k.name)
		outer := take(t, lock, longLease)
		inner := takeWith(outer.Context(), t, lock, longLease)
		unlock(t, inner)
		require.NoError(t, lock.Unlock(outer.Context()))
	})
	closeClient(t, c)
	require.Empty(t, log.With(""))
}
