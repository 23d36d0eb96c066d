package rlock_test

import (
	"context"
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
