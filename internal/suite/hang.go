package suite

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Servers that hang, or cannot be reached, delay no caller for longer than it has agreed to.
var hang = []Promise{
	{
		Name:  "each wait is exact while the servers hang",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			p.NodeTimeout = time.Minute
			lock := k.New(p, "lock")
			try := func(ctx context.Context, wait time.Duration) error {
				_, err := k.New(p, "another").TryLock(ctx, wait, rlock.Watchdog)
				return err
			}
			within := func(limit time.Duration, do func(context.Context) error) error {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				return do(ctx)
			}
			hold := locktest.Acquire(t, lock, rlock.Lease(time.Hour))
			synctest.Wait()
			for _, call := range []struct {
				name string
				took time.Duration
				do   func() error
			}{
				{"TryLock", 1234567 * time.Microsecond, func() error {
					return try(t.Context(), 1234567*time.Microsecond)
				}},
				{"TryLock of a caller without an end", time.Second, func() error {
					return try(context.Background(), time.Second)
				}},
				{"Lock", 4 * time.Second, func() error {
					return within(4*time.Second, func(ctx context.Context) error {
						_, err := k.New(p, "another").Lock(ctx, rlock.Watchdog)
						return err
					})
				}},
				{"nested", 70 * time.Millisecond, func() error {
					if k.Flat {
						time.Sleep(70 * time.Millisecond)
						return rlock.ErrOutcomeUnknown
					}
					_, err := lock.TryLock(hold.Context(), 70*time.Millisecond, rlock.Lease(time.Minute))
					return err
				}},
				{"Unlock", 3 * time.Second, func() error { return hold.Unlock() }},
			} {
				e.pause(t)
				start := time.Now()
				err := call.do()
				if k.Name == "multilock" { // which asks once more at the end of a wait
					require.InDelta(t, call.took, time.Since(start), float64(10*time.Millisecond))
				} else {
					require.Equal(t, call.took, time.Since(start), call.name)
				}
				require.NotErrorIs(t, err, rlock.ErrNotAcquired, call.name)
				if call.name == "Lock" {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					require.NotErrorIs(t, err, context.DeadlineExceeded, call.name)
				}
				if k.Masters == 1 || call.name == "Unlock" {
					require.ErrorIs(t, err, rlock.ErrOutcomeUnknown, call.name)
				}
				e.resume(t)
				synctest.Wait()
			}
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "an attempt without a wait takes Options.CommandTimeout while the servers hang",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, commandTimeout(2*time.Second))
			e.pause(t)
			start := time.Now()
			_, err := k.New(p, "lock").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Hour))
			require.Equal(t, 2*time.Second, time.Since(start))
			requireUnknown(t, k, err)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			e.resume(t)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a waiter acquires the lock when the servers go on",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			e.pause(t)
			waiter := locktest.LockInBackground(t.Context(), k.New(p, "lock"), rlock.Lease(time.Minute))
			time.Sleep(time.Second)
			require.Empty(t, waiter)
			e.resume(t)
			locktest.Unlock(t, locktest.Acquired(t, waiter))
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a release is finished when the servers go on",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, commandTimeout(500*time.Millisecond))
			hold := locktest.Acquired(t,
				locktest.LockInBackground(t.Context(), k.New(p, "lock"), rlock.Lease(time.Minute)))
			e.pause(t)
			locktest.Within(t, e.atMost(2500*time.Millisecond), func() {
				require.ErrorIs(t, hold.Unlock(), rlock.ErrOutcomeUnknown)
			})
			require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
			e.resume(t)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a release is finished when the servers can be reached again",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k, commandTimeout(2*time.Second))
			hold := locktest.Acquired(t,
				locktest.LockInBackground(t.Context(), k.New(p, "lock"), rlock.Lease(time.Minute)))
			e.everywhere(t, k, "lock")
			wire.Cut()
			require.ErrorIs(t, hold.Unlock(), rlock.ErrOutcomeUnknown)
			require.True(t, e.Held(t))
			wire.Mend()
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a waiter acquires the lock when the servers can be reached again",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			renewed := locktest.Acquire(t, k.New(p, "renewed"), rlock.Watchdog)
			wire.Cut()
			waiter := locktest.LockInBackground(t.Context(), k.New(p, "lock"), rlock.Lease(time.Minute))
			time.Sleep(time.Second)
			require.Empty(t, waiter)
			_, err := k.New(p, "another").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
			require.ErrorContains(t, err, "refused")
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			wire.Mend()
			locktest.Unlock(t, locktest.Acquired(t, waiter))
			require.True(t, renewed.Valid())
			locktest.Unlock(t, renewed)
			e.RequireNothingLeft(t)
		},
	},
}
