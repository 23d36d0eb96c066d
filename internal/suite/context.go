package suite

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/compose"
	"holdfast/internal/locktest"
	"holdfast/rlock"
)

type contextKey struct{}

// Context: the context of a hold is for the work under the lock.
var contexts = []Promise{
	{
		Name: "the context of a hold carries the values and the owner of its caller",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			for _, ctx := range []context.Context{t.Context(), rlock.WithOwner(t.Context())} {
				ctx := context.WithValue(ctx, contextKey{}, "value")
				hold := locktest.AcquireWith(ctx, t, k.New(p, "lock"), rlock.Watchdog)
				inner := hold.Context()
				require.Equal(t, "value", inner.Value(contextKey{}))
				require.Equal(t, inner, hold.Context(), "a hold has one context")
				require.NoError(t, inner.Err())
				require.True(t, rlock.HasOwner(inner))
				require.NoError(t, k.New(p, "lock").Unlock(inner))
			}
		},
	},
	{
		Name: "the context of a hold ends with the hold, and has the reason",
		Test: func(t *testing.T, e *Env, k Kind) {
			unlock := func(t *testing.T, _ *Party, h *rlock.Hold) { locktest.Unlock(t, h) }
			for _, end := range []struct {
				name   string
				how    func(t *testing.T, p *Party, h *rlock.Hold)
				reason error
			}{
				{"released", unlock, rlock.ErrReleased},
				{"left", func(_ *testing.T, _ *Party, h *rlock.Hold) { h.Leave() }, rlock.ErrReleased},
				{"lost", func(t *testing.T, p *Party, _ *rlock.Hold) {
					k.force(t, p, "lost")
				}, rlock.ErrLost},
				{"closed", func(t *testing.T, p *Party, _ *rlock.Hold) { p.close(t) }, rlock.ErrClosed},
			} {
				p := e.Party(t)
				hold := locktest.Acquire(t, k.New(p, end.name), rlock.Watchdog)
				ctx := hold.Context()
				require.NoError(t, ctx.Err())
				e.everywhere(t, k, end.name)
				end.how(t, p, hold)
				locktest.Receive(t, hold.Done(), "the hold goes on")
				locktest.Receive(t, ctx.Done(), "the context goes on")
				if end.reason == rlock.ErrClosed {
					end.reason = e.closed(k, hold.Err())
				}
				require.ErrorIs(t, hold.Err(), end.reason)
				require.Equal(t, hold.Err(), context.Cause(ctx))
				require.False(t, hold.Valid())
				if end.reason == rlock.ErrReleased {
					end.reason = rlock.ErrNotHeld
				}
				require.ErrorIs(t, hold.Extend(t.Context(), rlock.Watchdog), end.reason)
			}
			hold := locktest.Acquire(t, k.New(e.Party(t), "released"), rlock.Watchdog)
			locktest.Unlock(t, hold)
			require.Equal(t, rlock.ErrReleased, context.Cause(hold.Context()), "asked for later")
		},
	},
	{
		Name: "a hold goes on when the caller's context ends, until it is released",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			ctx, cancel := context.WithCancel(t.Context())
			hold := locktest.AcquireWith(ctx, t, lock, rlock.Watchdog)
			inner := hold.Context()
			cancel()
			require.ErrorIs(t, inner.Err(), context.Canceled)
			require.NoError(t, hold.Err())
			require.Empty(t, hold.Done())
			require.True(t, hold.Valid())
			requireBusy(t, k.Contender(e.Party(t), "lock"))
			require.NoError(t, hold.Unlock())
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "an attempt with the context of an ended hold says how that has ended",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			lock := k.New(p, "lock")
			released := locktest.Acquire(t, lock, rlock.Watchdog)
			locktest.Unlock(t, released)
			lost := locktest.Acquire(t, lock, rlock.Watchdog)
			k.force(t, p, "lock")
			requireLost(t, lost)
			for hold, reason := range map[*rlock.Hold]error{
				released: rlock.ErrReleased, lost: rlock.ErrLost, nil: rlock.ErrNotHeld,
			} {
				_, err := lock.Lock(hold.Context(), rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
				require.ErrorIs(t, err, reason)
			}
		},
	},
	{
		Name: "an inner context ends with its hold, or with the outer context",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			outer := locktest.Acquire(t, lock, rlock.Watchdog)
			first := locktest.AcquireWith(outer.Context(), t, lock, rlock.Watchdog)
			second := locktest.AcquireWith(outer.Context(), t, lock, rlock.Watchdog)
			locktest.Unlock(t, first)
			require.Equal(t, rlock.ErrReleased, context.Cause(first.Context()))
			require.NoError(t, second.Context().Err())
			locktest.Unlock(t, outer)
			require.Equal(t, rlock.ErrReleased, context.Cause(second.Context()))
			require.True(t, second.Valid())
			locktest.Unlock(t, second)
		},
	},
	{
		Name: "an inner context does not end before its hold",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, end := range []func(p *Party){
				func(p *Party) { k.force(t, p, "lock") }, func(p *Party) { p.close(t) },
			} {
				p := e.Party(t, func(o *rlock.Options) { o.ReleaseOnClose = true })
				outer := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
				inner := locktest.AcquireWith(outer.Context(), t, k.New(p, "lock"), rlock.Watchdog)
				ctx, ended := inner.Context(), make(chan error, 1)
				rlock.Internals(compose.Access{}).OnEnd(inner, func(error) { ended <- ctx.Err() })
				end(p)
				require.NoError(t, locktest.Receive(t, ended, "the inner hold goes on"))
				locktest.Receive(t, ctx.Done(), "the context of the inner hold goes on")
				require.Equal(t, inner.Err(), context.Cause(ctx))
			}
		},
	},
	{
		Name: "a detached context has no owner, and ends with its parent",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			ctx := rlock.Detached(context.WithValue(hold.Context(), contextKey{}, "value"))
			require.False(t, rlock.HasOwner(ctx))
			require.Equal(t, "value", ctx.Value(contextKey{}))
			for _, ctx := range []context.Context{ctx, rlock.WithOwner(hold.Context())} {
				_, err := k.Contender(p, "lock").TryLock(ctx, rlock.NoWait, rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrNotAcquired, "it shares the owner")
			}
			locktest.Unlock(t, hold)
			require.ErrorIs(t, context.Cause(ctx), rlock.ErrReleased)
		},
	},
	{
		Name: "EnsureOwner keeps an owner that is there",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			require.False(t, rlock.HasOwner(t.Context()))
			lock, ctx := k.New(e.Party(t), "lock"), rlock.EnsureOwner(t.Context())
			hold := locktest.AcquireWith(ctx, t, lock, rlock.Watchdog)
			for _, ctx := range []context.Context{ctx, hold.Context()} {
				locktest.AcquireWith(rlock.EnsureOwner(ctx), t, lock, rlock.Watchdog)
				require.NoError(t, lock.Unlock(ctx))
			}
			require.True(t, hold.Valid())
		},
	},
}
