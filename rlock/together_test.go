package rlock_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/hooks"
	"holdfast/internal/redistest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// inside is the hooks of package rlock for package multilock, whose tests cover the rest.
var hook = hooks.Get[*rlock.Lock, *rlock.Hold]()

// three returns locks that can be acquired as a batch.
func three(c *rlock.Client) []*rlock.Lock {
	return []*rlock.Lock{c.NewLock("a"), c.NewLock("b"), c.NewLock("c")}
}

// takeThree acquires them, for the owner in ctx.
func takeThree(
	ctx context.Context, t *testing.T, c *rlock.Client, lease time.Duration,
) []*rlock.Hold {
	t.Helper()
	holds, err := hook.TryBatch(ctx, lease, three(c))
	require.NoError(t, err)
	require.Len(t, holds, 3)
	return holds
}

func releaseThree(t *testing.T, holds []*rlock.Hold) {
	t.Helper()
	for _, err := range hook.ReleaseBatch(holds) {
		require.NoError(t, err)
	}
}

func TestBatchIsRefusedWhenOneLockIsHeld(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	theirs := take(t, c.NewLock("b"), longLease)
	_, err := hook.TryBatch(t.Context(), longLease, three(c))
	var held *rlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, "b", held.Lock)
	require.Equal(t, theirs.Owner(), held.Owner)
	require.Greater(t, held.TTL, longLease/2)
	require.ErrorContains(t, err, `lock "b"`)
	unlock(t, theirs)
	requireFree(t, s, "a")
	require.Zero(t, rlock.Sessions(c))

	for _, lease := range []time.Duration{0, time.Millisecond} {
		_, err = hook.TryBatch(t.Context(), lease, three(c))
		require.ErrorIs(t, err, rlock.ErrInvalid)
	}
	holds := takeThree(t.Context(), t, c, math.MaxInt64-1)
	require.True(t, holds[0].Valid())
	releaseThree(t, holds)
}

func TestNestedPartThatIsGoneFailsAllAndEndsItsHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	ctx := rlock.WithOwner(t.Context())
	outer := takeWith(ctx, t, c.NewLock("b"), longLease)
	s.Do(t, "DEL", "b")
	_, err := hook.TryBatch(ctx, longLease, three(c))
	require.ErrorIs(t, err, watchdog.ErrGone)
	require.ErrorContains(t, err, `lock "b" lost`)
	require.ErrorIs(t, outer.Err(), rlock.ErrLost)
	require.Empty(t, s.Keys(t))
	releaseThree(t, takeThree(ctx, t, c, longLease)) // a new acquisition
	require.ErrorIs(t, outer.Unlock(t.Context()), rlock.ErrLost)
	require.Empty(t, s.Keys(t))
}

// keptAttempt starts an attempt whose script is executed, but its reply is held back.
func keptAttempt(
	ctx context.Context, t *testing.T, s *redistest.Server, options rlock.Options,
) (*rlock.Client, *gated, <-chan outcome) {
	t.Helper()
	g := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, "batch_acquire.lua"))
	t.Cleanup(g.open)
	c := newClientOn(t, g, options)
	attempt := inBackground(func() (*rlock.Hold, error) {
		_, err := hook.TryBatch(ctx, longLease, three(c))
		return nil, err
	})
	receive(t, g.kept, "nothing was asked")
	return c, g, attempt
}

func TestBatchThatIsGivenUpIsUndone(t *testing.T) {
	t.Parallel()
	t.Run("by its caller", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, g, attempt := keptAttempt(ctx, t, s, rlock.Options{})
		cancel()
		o := result(t, attempt)
		require.ErrorIs(t, o.Err, context.Canceled)
		require.ErrorIs(t, o.Err, rlock.ErrOutcomeUnknown)
		require.Len(t, s.Keys(t), 3)
		g.open()
		waitForNothingLeft(t, s)
	})
	t.Run("by the command time-out", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t)
		_, g, attempt := keptAttempt(t.Context(), t, s,
			rlock.Options{CommandTimeout: 100 * time.Millisecond})
		requireNoReply(t, result(t, attempt).Err)
		g.open()
		waitForNothingLeft(t, s)
	})
	t.Run("by Close", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t)
		c, g, attempt := keptAttempt(t.Context(), t, s, rlock.Options{})
		closed := make(chan error, 1)
		go func() { closed <- c.Close(context.Background()) }()
		o := result(t, attempt)
		require.ErrorIs(t, o.Err, rlock.ErrClosed)
		require.NotErrorIs(t, o.Err, rlock.ErrNotAcquired)
		g.open()
		require.NoError(t, receive(t, closed, "Close hangs"))
		waitForNothingLeft(t, s)
		_, err := hook.TryBatch(t.Context(), longLease, three(c))
		require.ErrorIs(t, err, rlock.ErrClosed)
	})
}

// The other locks of the attempt are released, and what was held before stays.
func TestPartForceUnlockedBeforeTheReplyFailsTheBatch(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	g := keepReplies(s.Client(t, redistest.OneConnection), loaded(t, s, "batch_acquire.lua"))
	t.Cleanup(g.open)
	c := newClientOn(t, g, rlock.Options{})
	ctx := rlock.WithOwner(t.Context())
	a, b := takeWith(ctx, t, c.NewLock("a"), longLease), takeWith(ctx, t, c.NewLock("b"), longLease)
	attempt := inBackground(func() (*rlock.Hold, error) {
		_, err := hook.TryBatch(ctx, longLease, three(c))
		return nil, err
	})
	receive(t, g.kept, "nothing was asked")
	_, err := c.NewLock("b").ForceUnlock(t.Context())
	require.NoError(t, err)
	g.open()
	o := result(t, attempt)
	require.ErrorIs(t, o.Err, rlock.ErrLost)
	require.ErrorContains(t, o.Err, `lock "b" lost`)
	require.ErrorIs(t, b.Err(), rlock.ErrLost)
	require.True(t, a.Valid())
	waitUntilFree(t, s, "b")
	waitUntilFree(t, s, "c")
	unlock(t, a)
	requireFree(t, s, "a")
}

func TestBatchReleaseHasAnErrorForEach(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, rlock.Options{})
	ctx := rlock.WithOwner(t.Context())
	outer := takeThree(ctx, t, c, longLease)
	inner := takeThree(ctx, t, c, longLease)
	unlock(t, inner[0])
	s.Do(t, "DEL", "c") // behind everyone's back
	errs := hook.ReleaseBatch(inner)
	require.ErrorIs(t, errs[0], rlock.ErrNotHeld)
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], rlock.ErrLost)
	require.Equal(t, "1", s.DoString(t, "HGET", "a", outer[0].Owner()))
	require.Equal(t, "1", s.DoString(t, "HGET", "b", outer[1].Owner()))
	require.ErrorIs(t, outer[2].Err(), rlock.ErrLost)
	errs = hook.ReleaseBatch(outer)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], watchdog.ErrGone)
	require.ErrorContains(t, errs[2], `lock "c" lost`)
	for _, err := range hook.ReleaseBatch(outer) {
		require.ErrorIs(t, err, rlock.ErrNotHeld)
	}
	require.Empty(t, s.Keys(t))
	require.Zero(t, rlock.Sessions(c))
}
