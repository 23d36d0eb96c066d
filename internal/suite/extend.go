package suite

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Extend makes a lock last longer.
var extend = []Promise{
	{
		Name:  "it moves the deadline and the end of the lease, and never back",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, other := e.Party(t), e.Party(t)
			for name, lease := range map[string]rlock.Lease{
				"explicit": rlock.Lease(2 * time.Second), "renewed": rlock.Watchdog,
			} {
				hold := locktest.Acquire(t, k.New(p, name), lease)
				before := time.Now()
				require.NoError(t, hold.Extend(t.Context(), rlock.Lease(time.Minute)))
				requireDeadline(t, hold, before, time.Now(), time.Minute)
				e.settle()
				extended := hold.Deadline()
				require.NoError(t, hold.Extend(t.Context(), rlock.Lease(time.Second)))
				require.Equal(t, extended, hold.Deadline())
				time.Sleep(2100 * time.Millisecond) // longer than either
				require.True(t, hold.Valid())
				requireContended(t, k, other, name)
				locktest.Unlock(t, hold)
				e.RequireNothingLeft(t)
			}
		},
	},
	{
		Name:  "with the lease of the watchdog it extends once",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, watchdogLease(3*time.Second))
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(2*time.Second))
			before := time.Now()
			require.NoError(t, hold.Extend(t.Context(), rlock.Watchdog))
			requireDeadline(t, hold, before, time.Now(), 3*time.Second)
			locktest.Receive(t, hold.Done(), "it is renewed")
			requireLostBy(t, hold, rlock.ErrExpired)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "an extension of one nested hold lasts for all, whichever is released first",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			for extended := range 3 {
				for released := range 3 {
					var levels []*rlock.Hold
					ctx := rlock.WithOwner(t.Context())
					for range 3 {
						levels = append(levels, locktest.AcquireWith(ctx, t, lock, rlock.Lease(5*time.Second)))
					}
					require.NoError(t, levels[extended].Extend(t.Context(), rlock.Lease(time.Minute)))
					for i := range levels {
						level := levels[(released+i)%3]
						require.Greater(t, time.Until(level.Deadline()), 50*time.Second)
						locktest.Unlock(t, level)
					}
					e.RequireNothingLeft(t)
				}
			}
		},
	},
	{
		Name: "a lost lock is not extended",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			for name, lose := range map[string]func(hold *rlock.Hold){
				"gone": func(*rlock.Hold) { e.doAll(t, "FLUSHALL") },
				"taken": func(*rlock.Hold) {
					e.doAll(t, "FLUSHALL")
					locktest.Acquire(t, k.Contender(e.Party(t), "taken"), rlock.Lease(time.Minute))
				},
				"expired": func(hold *rlock.Hold) { locktest.Receive(t, hold.Done(), "it does not end") },
			} {
				lease := time.Minute
				if name == "expired" {
					lease = 3 * time.Second
				}
				hold := locktest.Acquire(t, k.New(p, name), rlock.Lease(lease))
				all := []*rlock.Hold{hold}
				if !k.Flat {
					all = append(all, locktest.AcquireWith(hold.Context(), t, k.New(p, name), rlock.Lease(lease)))
				}
				lose(hold)
				for range 2 {
					require.ErrorIs(t, hold.Extend(t.Context(), rlock.Lease(time.Minute)), rlock.ErrLost, name)
				}
				for _, hold := range all {
					require.ErrorIs(t, hold.Err(), rlock.ErrLost, name)
				}
				e.doAll(t, "FLUSHALL")
			}
		},
	},
	{
		Name: "a hold that has ended is not extended, and impossible calls change nothing",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Minute))
			e.settle()
			until := hold.Deadline()
			if !k.Flat {
				inner := locktest.AcquireWith(hold.Context(), t, k.New(p, "lock"), rlock.Lease(time.Second))
				locktest.Unlock(t, inner)
				err := inner.Extend(t.Context(), rlock.Lease(time.Hour))
				require.ErrorIs(t, err, rlock.ErrNotHeld)
				require.NotErrorIs(t, err, rlock.ErrReleased)
			}
			err := hold.Extend(t.Context(), rlock.Lease(3*time.Millisecond-1))
			require.ErrorIs(t, err, rlock.ErrInvalid)
			require.ErrorContains(t, err, "at least 3ms")

			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("the caller went home")
			cancel(why)
			lost := locktest.Acquire(t, k.New(p, "lost"), rlock.Lease(3*time.Second))
			locktest.Receive(t, lost.Done(), "it does not end")
			for _, ended := range []context.Context{ctx, lost.Context()} {
				err = hold.Extend(ended, rlock.Lease(time.Hour))
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
				if k.Masters == 1 {
					require.NotErrorIs(t, err, rlock.ErrLost, "that is another hold")
				}
			}
			require.ErrorIs(t, hold.Extend(ctx, rlock.Lease(time.Hour)), why)
			require.True(t, hold.Valid())
			if e.Virtual {
				require.Equal(t, until, hold.Deadline())
			} else { // the last node of a RedLock may have granted it since
				require.WithinDuration(t, until, hold.Deadline(), 10*time.Second)
			}
			locktest.Unlock(t, hold)
			if k.Masters > 1 {
				return // it is lost without a quorum of clients
			}
			hold = locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Minute))
			locktest.CloseClient(t, p.Client)
			require.ErrorIs(t, hold.Extend(t.Context(), rlock.Lease(time.Hour)), rlock.ErrClosed)
			locktest.Unlock(t, hold)
		},
	},
	{
		Name: "it is repeated after lost replies",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(10*time.Second))
			wire.settle(t, e)
			wire.Lose(2)
			require.NoError(t, hold.Extend(t.Context(), rlock.Lease(time.Minute)))
			require.Greater(t, time.Until(hold.Deadline()), 50*time.Second)
			locktest.Eventually(t, func() bool { return wire.ToLose() == 0 }, "no reply was lost")
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a rejected extension changes nothing",
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Lease(time.Minute))
			e.everywhere(t, k, "lock")
			until := hold.Deadline()
			e.Reject(t, permanent)
			locktest.Within(t, e.atMost(time.Second), func() {
				require.ErrorContains(t, hold.Extend(t.Context(), rlock.Lease(time.Hour)), permanent)
			})
			require.True(t, hold.Valid())
			if e.Virtual {
				require.Equal(t, until, hold.Deadline())
			} else { // the last node of a RedLock may have granted it since
				require.WithinDuration(t, until, hold.Deadline(), 10*time.Second)
			}
			e.Reject(t, "")
			require.NoError(t, hold.Extend(t.Context(), rlock.Lease(time.Hour)))
			locktest.Unlock(t, hold)
		},
	},
	{
		Name:  "on servers that hang it returns after Options.CommandTimeout and changes nothing",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Lease(time.Minute))
			e.settle()
			until := hold.Deadline()
			e.pause(t)
			start := time.Now()
			require.ErrorIs(t, hold.Extend(t.Context(), rlock.Lease(time.Hour)), rlock.ErrOutcomeUnknown)
			require.Equal(t, 3*time.Second, time.Since(start))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, hold.Extend(ctx, rlock.Lease(time.Hour)), context.DeadlineExceeded)
			require.Equal(t, 4*time.Second, time.Since(start))
			require.True(t, hold.Valid())
			require.Equal(t, until, hold.Deadline())
			e.resume(t)
			require.NoError(t, hold.Extend(t.Context(), rlock.Lease(time.Hour)))
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "an extension that is confirmed after the loss is undone",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k, commandTimeout(time.Minute))
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Second))
			wire.settle(t, e)
			wire.Hold()
			extended := make(chan error, 1)
			go func() { extended <- hold.Extend(t.Context(), rlock.Lease(time.Hour)) }()
			locktest.Receive(t, hold.Done(), "the extension counts without a reply")
			require.True(t, k.Masters > 1 || e.Held(t), "it was not executed")
			wire.Pass()
			require.ErrorIs(t, locktest.Receive(t, extended, "Extend does not return"), rlock.ErrLost)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "an extension beside the release leaves nothing behind",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			for range 10 {
				hold := locktest.AcquireWith(rlock.WithOwner(t.Context()), t, lock, rlock.Lease(time.Minute))
				var calls sync.WaitGroup
				for range 8 {
					calls.Go(func() {
						if err := hold.Extend(t.Context(), rlock.Lease(time.Hour)); err != nil {
							assert.ErrorIs(t, err, rlock.ErrNotHeld)
							assert.NotErrorIs(t, err, rlock.ErrLost)
						}
					})
				}
				locktest.Unlock(t, hold)
				calls.Wait()
				e.RequireNothingLeft(t)
			}
		},
	},
}
