package suite

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/compose"
	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/rlock"
)

// taken has the ways to take a lock away without its holder's client.
var taken = map[string]func(t *testing.T, e *Env, k Kind, name string){
	"deleted": func(t *testing.T, e *Env, k Kind, name string) { e.delete(t, k, e.Party(t), name) },
	"force-unlocked by another client": func(t *testing.T, e *Env, k Kind, name string) {
		k.force(t, e.Party(t), name)
	},
	"the server was emptied": func(t *testing.T, e *Env, _ Kind, _ string) {
		for _, s := range e.Servers {
			s.Do(t, "FLUSHALL")
		}
	},
}

// Loss: a hold whose lock is taken away ends with ErrLost, and every call says so.
var loss = []Promise{
	{
		Name: "the next renewal ends the holds of a lock that was taken away",
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 3 * time.Second
			for how, take := range taken {
				p := e.Party(t, func(o *rlock.Options) { o.WatchdogLease = lease })
				ctx, start := rlock.WithOwner(t.Context()), time.Now()
				holds := k.nest(ctx, t, k.New(p, "lock"), rlock.Watchdog)
				take(t, e, k, "lock")
				for _, hold := range holds {
					requireLost(t, hold)
				}
				require.Less(t, time.Since(start), e.atMost(lease*5/6), how)
				for _, hold := range holds {
					require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
					require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
				}
				e.RequireNothingLeft(t)
			}
		},
	},
	{
		Name: "an unlock of a lock that was taken away says lost, and ends all levels",
		Test: func(t *testing.T, e *Env, k Kind) {
			for how, take := range taken {
				ctx := rlock.WithOwner(t.Context())
				holds := k.nest(ctx, t, k.New(e.Party(t), "lock"), rlock.Lease(time.Hour))
				e.settle() // a RedLock is held on all masters
				take(t, e, k, "lock")
				for i := len(holds) - 1; i >= 0; i-- {
					err := holds[i].Unlock()
					if i == 0 || k.Masters == 1 { // a RedLock sends only its last release
						require.ErrorIs(t, err, rlock.ErrLost, how)
						require.True(t, i == 0 || !holds[0].Valid(), how)
					}
					require.ErrorIs(t, holds[i].Unlock(), rlock.ErrNotHeld, how)
				}
				locktest.Unlock(t, locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Lease(time.Hour)))
			}
		},
	},
	{
		Name: "extend and a nested lock find a loss, and acquire nothing",
		Test: func(t *testing.T, e *Env, k Kind) {
			for how, take := range taken {
				p, owner := e.Party(t), rlock.WithOwner(t.Context())
				lock, other := k.New(p, "lock"), k.Contender(e.Party(t), "lock")
				calls := []func(h *rlock.Hold) error{
					func(h *rlock.Hold) error { return h.Extend(t.Context(), rlock.Lease(2*time.Hour)) },
					func(h *rlock.Hold) error {
						_, err := lock.TryLock(h.Context(), rlock.NoWait, rlock.Lease(time.Hour))
						return err
					},
					func(h *rlock.Hold) error {
						_, err := lock.Lock(h.Context(), rlock.Lease(time.Hour))
						return err
					},
				}
				if k.Flat {
					calls = calls[:1] // it does not ask
				}
				for _, call := range calls {
					hold := locktest.AcquireWith(owner, t, lock, rlock.Lease(time.Hour))
					e.settle()
					take(t, e, k, "lock")
					require.ErrorIs(t, call(hold), rlock.ErrLost, how)
					require.ErrorIs(t, hold.Err(), rlock.ErrLost, "it has ended when the call returns")
					requireLost(t, hold)
					locktest.Unlock(t, locktest.Acquire(t, other, rlock.Lease(time.Hour)))

					if k.Name == "multilock" { // its other parts stay held
						require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
					}
					next := locktest.AcquireWith(owner, t, lock, rlock.Lease(time.Hour))
					require.NotEqual(t, hold.Owner(), next.Owner())
					require.Error(t, hold.Unlock())
					require.True(t, next.Valid())
					locktest.Unlock(t, next)
				}
			}
		},
	},
	{
		Name: "a force unlock ends all holds of its client at once, and wakes a waiter",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			holds := k.nest(rlock.WithOwner(t.Context()), t, k.New(p, "lock"), rlock.Lease(time.Hour))
			waiter := locktest.LockInBackground(t.Context(), k.Contender(e.Party(t), "lock"),
				rlock.Watchdog)
			e.settle()
			start := time.Now()
			for _, part := range k.parts(p, "lock") {
				held, err := part.ForceUnlock(t.Context())
				require.NoError(t, err)
				require.True(t, held || k.Masters > 1) // a lost RedLock releases the rest by itself
			}
			for _, hold := range holds {
				if k.Masters == 1 {
					require.ErrorIs(t, hold.Err(), rlock.ErrLost, "when the call returns")
					require.ErrorIs(t, hold.Err(), rlock.ErrForced)
				}
				requireLost(t, hold)
			}
			next := locktest.Acquired(t, waiter)
			require.Less(t, time.Since(start), locktest.Missed)
			for _, hold := range holds {
				require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			}
			require.True(t, next.Valid())
			locktest.Unlock(t, next)
			e.RequireNothingLeft(t)
			for _, part := range k.parts(p, "lock") {
				held, err := part.ForceUnlock(t.Context())
				require.NoError(t, err)
				require.False(t, held, "it was free")
			}
		},
	},
	{
		Name: "a hold ends with its lease, not before others get in",
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 2 * time.Second
			p, ctx := e.Party(t), rlock.WithOwner(t.Context())
			holds := k.nest(ctx, t, k.New(p, "lock"), rlock.Lease(lease))
			waiter := locktest.LockInBackground(t.Context(), k.Contender(e.Party(t), "lock"),
				rlock.Watchdog)
			locktest.Receive(t, holds[0].Done(), "the lease has no end")
			if e.Virtual {
				requireExpires(t, holds[0])
			}
			for _, hold := range holds {
				requireLost(t, hold)
				require.ErrorIs(t, hold.Err(), rlock.ErrExpired)
			}
			next := acquiredAfter(t, holds[0].Deadline(), waiter)
			for _, hold := range holds {
				require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			}
			require.True(t, next.Valid())
			locktest.Unlock(t, next)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "an unlock after the deadline says lost, and still releases",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, closed := range []bool{false, true} {
				if closed && k.Masters > 1 {
					continue // it has ended with ErrClosed
				}
				p := e.Party(t)
				hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Hour))
				if closed {
					p.close(t) // nothing watches the deadline any more
				}
				time.Sleep(time.Until(hold.Deadline()))
				require.False(t, hold.Valid())
				if !closed {
					time.Sleep(time.Second) // in the margin for drifting clocks, which is 36 s
				}
				require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
				if !closed {
					e.RequireNothingLeft(t)
				}
			}
		},
	},
	{
		Name: "unlock by the owner tells a known loss once for each level",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, ctx := e.Party(t), rlock.WithOwner(t.Context())
			lock := k.New(p, "lock")
			lose := func() []*rlock.Hold {
				holds := k.nest(ctx, t, lock, rlock.Lease(time.Hour))
				k.force(t, p, "lock")
				requireLost(t, holds[0])
				e.RequireNothingLeft(t)
				return holds
			}
			for range lose() {
				require.ErrorIs(t, lock.Unlock(rlock.WithOwner(t.Context())), rlock.ErrNotHeld)
				require.ErrorIs(t, k.New(p, "another").Unlock(ctx), rlock.ErrNotHeld)
				require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrLost)
			}
			require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)

			if !k.Flat {
				holds := lose()
				require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrLost)
				require.ErrorIs(t, holds[2].Unlock(), rlock.ErrNotHeld, "it was the innermost")
				require.ErrorIs(t, holds[1].Unlock(), rlock.ErrLost)
				require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrLost)
				require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
			}
			lose()
			locktest.AcquireWith(ctx, t, lock, rlock.Lease(time.Hour))
			require.NoError(t, lock.Unlock(ctx), "it releases what was acquired since")
			require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
		},
	},
	{
		// The watchdog ends one level after the other. Here it is held up before the outer one.
		Name:  "a call that says lost returns after its hold has ended",
		Kept:  nests,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			calls := []func(h *rlock.Hold) error{
				func(h *rlock.Hold) error { return h.Extend(context.Background(), rlock.Lease(time.Hour)) },
				func(h *rlock.Hold) error { return h.Unlock() },
			}
			if k.Name == "multilock" {
				calls = calls[:1] // it ends as released, and its parts tell the loss
			}
			for _, call := range calls {
				for late := range 2 { // the inner hold ends late, or the outer one
					outer := locktest.Acquire(t, lock, rlock.Lease(time.Minute))
					inner := locktest.AcquireWith(outer.Context(), t, lock, rlock.Lease(time.Minute))
					ctx := outer.Context()
					var seen atomic.Bool
					rlock.Internals(compose.Access{}).OnEnd([]*rlock.Hold{inner, outer}[late],
						func(error) {
							for i := 0; i < 10_000 && !seen.Load(); i++ {
								runtime.Gosched() // lets all others run that do not wait for this
							}
						})
					time.Sleep(time.Until(outer.Deadline()))
					require.ErrorIs(t, call(outer), rlock.ErrLost)
					ended, cause := outer.Err(), context.Cause(ctx)
					seen.Store(true)
					require.ErrorIs(t, ended, rlock.ErrLost)
					require.ErrorIs(t, cause, rlock.ErrLost)
					// Its context may end with the outer one, because of another part of a MultiLock.
					locktest.Receive(t, inner.Done(), "it goes on")
					requireLostBy(t, inner, rlock.ErrExpired)
					time.Sleep(time.Minute)
				}
			}
		},
	},
	{
		Name: "a loss is logged once, with the name of the lock",
		Test: func(t *testing.T, e *Env, k Kind) {
			var log logtest.Lines
			p := e.Party(t, func(o *rlock.Options) { o.Logger = log.Logger() })
			holds := k.nest(rlock.WithOwner(t.Context()), t, k.New(p, "lock"), rlock.Lease(time.Hour))
			parts := k.parts(p, "lock")
			if k.Name == "multilock" {
				parts = parts[:1] // each tells its own loss
			}
			for _, part := range parts {
				_, err := part.ForceUnlock(t.Context())
				require.NoError(t, err)
			}
			for _, hold := range holds {
				requireLost(t, hold)
				require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			}
			p.close(t)
			require.Len(t, log.With("lost"), 1)
			require.Contains(t, log.With("lost")[0], `lock=lock`)
		},
	},
	{
		Name: "ForceUnlock ends the holds of a lock that it finds gone",
		Kept: detaches, // a read-write lock has entries that others do not know
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			hold := locktest.Acquire(t, lock, rlock.Lease(time.Hour))
			e.doAll(t, "DEL", k.key("lock"))
			freed, err := lock.(*rlock.Lock).ForceUnlock(t.Context())
			require.NoError(t, err)
			require.False(t, freed)
			requireLost(t, hold)
		},
	},
}
