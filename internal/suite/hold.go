package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/rlock"
)

// Hold: what a hold says about itself, and how it is given up without a release.
var hold = []Promise{
	{
		Name: "a hold knows its lock, its owner and its token",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, ctx := e.Party(t), rlock.WithOwner(t.Context())
			lock := k.New(p, "a name: with colons")
			owners, token := make(map[string]bool), int64(0)
			for range 3 {
				holds := k.nest(ctx, t, lock, rlock.Lease(time.Hour))
				for _, hold := range holds {
					require.Equal(t, lock.Name(), hold.Name())
					require.Equal(t, holds[0].Owner(), hold.Owner())
					require.Equal(t, holds[0].Token(), hold.Token())
					require.True(t, strings.HasPrefix(hold.Owner(), p.Client.ID()+":"))
				}
				require.Equal(t, k.Fenced, holds[0].Token() > token)
				require.False(t, owners[holds[0].Owner()], "each acquisition has a name of its own")
				owners[holds[0].Owner()], token = true, holds[0].Token()
				for range holds {
					require.NoError(t, lock.Unlock(ctx))
				}
			}
		},
	},
	{
		Name:  "a lock that is left is free when its lease ends",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			var log logtest.Lines
			p := e.Party(t, func(o *rlock.Options) { o.Logger = log.Logger() })
			for name, lease := range map[string]rlock.Lease{
				"a lease": rlock.Lease(30 * time.Second), "the watchdog": rlock.Watchdog,
			} {
				lock, other := k.New(p, name), k.Contender(e.Party(t), name)
				hold := locktest.Acquire(t, lock, lease)
				if lease == rlock.Watchdog {
					time.Sleep(10 * time.Minute)
				}
				e.settle()
				deadline, ctx := hold.Deadline(), hold.Context()
				hold.Leave()
				hold.Leave()
				require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
				require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
				require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
				waiter := locktest.LockInBackground(t.Context(), other, rlock.Watchdog)
				time.Sleep(time.Until(deadline))
				locktest.Unlock(t, acquiredAfter(t, deadline, waiter))
				require.Less(t, time.Since(deadline), 10*time.Second)
			}
			p.close(t)
			require.Empty(t, log.With(""))
		},
	},
	{
		Name: "a level that is left leaves the outer one held",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			outer := locktest.Acquire(t, lock, rlock.Watchdog)
			locktest.AcquireWith(outer.Context(), t, lock, rlock.Watchdog).Leave()
			require.True(t, outer.Valid())
			requireBusy(t, k.Contender(e.Party(t), "lock"))
			locktest.Unlock(t, outer)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "leaving a lost hold acknowledges the loss",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Hour))
			k.force(t, p, "lock")
			requireLost(t, hold)
			hold.Leave()
			requireLost(t, hold)
			require.ErrorIs(t, k.New(p, "lock").Unlock(hold.Context()), rlock.ErrNotHeld)
		},
	},
	{
		Name:  "the watchdog renews no longer than MaxHold, however often the owner nests",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			var log logtest.Lines
			p := e.Party(t, func(o *rlock.Options) {
				o.MaxHold, o.WatchdogLease, o.Logger = 10*time.Minute, time.Minute, log.Logger()
			})
			lock, start := k.New(p, "lock"), time.Now()
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			long := locktest.Acquire(t, k.New(p, "with a lease"), rlock.Lease(time.Hour))
			for hold.Err() == nil && time.Since(start) < time.Hour {
				if nested, err := lock.TryLock(hold.Context(), rlock.NoWait, rlock.Watchdog); err == nil {
					_ = nested.Unlock()
				}
				time.Sleep(11 * time.Second)
			}
			require.Greater(t, time.Since(start), 9*time.Minute)
			require.LessOrEqual(t, time.Since(start), 10*time.Minute+11*time.Second)
			requireLost(t, hold)
			require.ErrorContains(t, hold.Err(), "held for Options.MaxHold, 10m0s")
			warned := log.With("half of Options.MaxHold")
			require.NotEmpty(t, warned)
			require.Regexp(t, "stack=.*locktest.Acquire", warned[0])
			require.True(t, long.Valid(), "MaxHold bounds the watchdog only")
		},
	},
}
