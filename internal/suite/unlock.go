package suite

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/rlock"
)

// Unlock: a hold is released once, by its owner, with the hold or without.
var unlock = []Promise{
	{
		Name: "nobody unlocks what another owner holds",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			lock := k.New(p, "lock")
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			require.ErrorIs(t, lock.Unlock(t.Context()), rlock.ErrNotHeld)
			require.ErrorIs(t, lock.Unlock(rlock.WithOwner(t.Context())), rlock.ErrNotHeld)
			require.ErrorIs(t, lock.Unlock(rlock.Detached(hold.Context())), rlock.ErrNotHeld)
			require.ErrorIs(t, k.New(e.Party(t), "lock").Unlock(hold.Context()), rlock.ErrNotHeld,
				"an owner of one client is none of another client")
			require.ErrorIs(t, k.New(p, "another").Unlock(hold.Context()), rlock.ErrNotHeld)
			require.True(t, hold.Valid())
			requireBusy(t, k.Contender(e.Party(t), "lock"))
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a lock of another kind under the same name unlocks nothing",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			for _, other := range append(Single(), Multi()) {
				if other.Name != k.Name && other.Name+"-behind-readers" != k.Name &&
					other.Name != k.Name+"-behind-readers" {
					require.ErrorIs(t, other.New(p, "lock").Unlock(hold.Context()),
						rlock.ErrNotHeld, other.Name)
				}
			}
			require.True(t, hold.Valid())
			requireBusy(t, k.Contender(e.Party(t), "lock"))
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a second unlock of a hold releases nothing",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, other := k.New(e.Party(t), "lock"), k.Contender(e.Party(t), "lock")
			ctx := rlock.WithOwner(t.Context())
			for _, hold := range k.nest(ctx, t, lock, rlock.Watchdog) {
				requireBusy(t, other, "the unlock before has released more than a level")
				locktest.Unlock(t, hold)
				require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
			}
			e.RequireNothingLeft(t) // on any master
			released := locktest.AcquireWith(ctx, t, lock, rlock.Watchdog)
			locktest.Unlock(t, released)
			next := locktest.AcquireWith(ctx, t, lock, rlock.Watchdog)
			require.ErrorIs(t, released.Unlock(), rlock.ErrNotHeld)
			require.True(t, next.Valid())
			requireBusy(t, other)
			locktest.Unlock(t, next)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "unlock by the owner releases the innermost level",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, ctx := e.Party(t), rlock.WithOwner(t.Context())
			holds := k.nest(ctx, t, k.New(p, "lock"), rlock.Watchdog)
			for i := len(holds) - 1; i >= 0; i-- {
				require.True(t, holds[i].Valid())
				require.NoError(t, k.New(p, "lock").Unlock(ctx), "through another Lock of the name")
				require.ErrorIs(t, holds[i].Err(), rlock.ErrReleased)
				require.ErrorIs(t, holds[i].Unlock(), rlock.ErrNotHeld)
			}
			require.ErrorIs(t, k.New(p, "lock").Unlock(ctx), rlock.ErrNotHeld)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "unlock works when its context has ended",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			ctx, cancel := context.WithCancel(rlock.WithOwner(t.Context()))
			cancel()
			require.NoError(t, locktest.Acquire(t, lock, rlock.Watchdog).Unlock())
			locktest.AcquireWith(context.WithoutCancel(ctx), t, lock, rlock.Watchdog)
			require.NoError(t, lock.Unlock(ctx))
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "UnlockTo joins the error of the release, unless the caller has it",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			for _, lose := range []bool{false, true} {
				for _, before := range []error{nil, errWork, rlock.ErrLost} {
					hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
					if lose {
						k.force(t, p, "lock")
						requireLost(t, hold)
					}
					if before == rlock.ErrLost { // what a function may return
						before = context.Cause(hold.Context())
					}
					after := before
					hold.UnlockTo(&after)
					if told := before == hold.Err() && k.Name != "multilock"; told || !lose {
						require.Equal(t, before, after)
						continue
					}
					require.ErrorIs(t, after, rlock.ErrLost)
					require.Equal(t, before == errWork, errors.Is(after, errWork))
				}
			}
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "nothing is logged about locks that are nested and released in order",
		Test: func(t *testing.T, e *Env, k Kind) {
			var log logtest.Lines
			p := e.Party(t, func(o *rlock.Options) { o.Logger = log.Logger() })
			lock, ctx := k.New(p, "lock"), rlock.WithOwner(t.Context())
			for range 2 {
				for range k.nest(ctx, t, lock, rlock.Watchdog) {
					require.NoError(t, lock.Unlock(ctx))
				}
			}
			p.close(t)
			require.Empty(t, log.With(""))
		},
	},
	{
		Name: "an outer level that is released first is logged once",
		// Readers share the lock anyway, and a RedLock does not look.
		Kept: func(k Kind) bool { return nests(k) && !k.Shared && k.Masters == 1 },
		Test: func(t *testing.T, e *Env, k Kind) {
			var log logtest.Lines
			p := e.Party(t, func(o *rlock.Options) { o.Logger = log.Logger() })
			for range 2 {
				// The mistake: two goroutines of one request, which has an owner.
				for _, hold := range k.nest(rlock.WithOwner(t.Context()), t, k.New(p, "lock"),
					rlock.Watchdog) {
					locktest.Unlock(t, hold)
				}
			}
			p.close(t)
			require.Len(t, log.With("did not exclude them"), 1)
			require.Len(t, log.With(""), 1)
		},
	},
}
