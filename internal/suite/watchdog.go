package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// The watchdog renews a lock until it is released.
var renewal = []Promise{
	{
		Name:  "it renews the lock each third of the lease",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Watchdog)
			other := e.Party(t)
			for range 10 {
				for range 60 {
					time.Sleep(time.Second)
					require.True(t, hold.Valid())
					require.GreaterOrEqual(t, time.Until(hold.Deadline()), 19*time.Second)
				}
				requireContended(t, k, other, "lock")
			}
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
			time.Sleep(time.Minute)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a renewal moves the deadline and the end of the lease",
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 3 * time.Second
			p, other := e.Party(t, watchdogLease(lease)), e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			first := hold.Deadline()
			time.Sleep(time.Until(first.Add(lease / 4)))
			require.NoError(t, hold.Err())
			require.True(t, hold.Deadline().After(first))
			requireContended(t, k, other, "lock")
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "an explicit lease is not renewed, even if the watchdog renews other locks",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			renewed := locktest.Acquire(t, k.New(p, "renewed"), rlock.Watchdog)
			start := time.Now()
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Minute))
			waiter := locktest.LockInBackground(t.Context(), k.Contender(e.Party(t), "lock"),
				rlock.Watchdog)
			<-hold.Done()
			requireDeadline(t, hold, start, start, time.Minute)
			requireLostBy(t, hold, rlock.ErrExpired)
			locktest.Unlock(t, locktest.Acquired(t, waiter))
			require.True(t, renewed.Valid())
		},
	},
	{
		Name:  "a nested hold is renewed only while it lasts",
		Kept:  nests,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			outer := locktest.Acquire(t, lock, rlock.Lease(40*time.Second))
			inner := locktest.AcquireWith(outer.Context(), t, lock, rlock.Watchdog)
			time.Sleep(5 * time.Minute)
			require.True(t, outer.Valid())
			locktest.Unlock(t, inner)
			require.True(t, outer.Valid())
			time.Sleep(30 * time.Second)
			requireLostBy(t, outer, rlock.ErrExpired)
		},
	},
	{
		Name:  "a nested hold with an explicit lease does not end the renewals",
		Kept:  nests,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			outer := locktest.Acquire(t, lock, rlock.Watchdog)
			inner := locktest.AcquireWith(outer.Context(), t, lock, rlock.Lease(time.Second))
			time.Sleep(time.Minute)
			require.True(t, inner.Valid())
			locktest.Unlock(t, inner)
			time.Sleep(time.Minute)
			require.True(t, outer.Valid())
		},
	},
	{
		Name:  "servers that hang for less than the lease cost no lock",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Watchdog)
			for range 5 {
				e.pause(t)
				time.Sleep(18 * time.Second) // less than the lease, with the 10 s before
				e.resume(t)
				time.Sleep(10 * time.Second)
				require.NoError(t, hold.Err())
			}
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "a rejected renewal is repeated until the lease ends",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			e.Reject(t, temporary)
			time.Sleep(28 * time.Second) // the deadline comes 302 ms before the lease ends
			e.Reject(t, "")
			time.Sleep(time.Minute)
			require.True(t, hold.Valid())
			e.Reject(t, temporary)
			until := hold.Deadline().Add(time.Second)
			<-hold.Done()
			require.Less(t, time.Now(), until)
			requireLostBy(t, hold, rlock.ErrExpired)
		},
	},
	{
		Name: "a renewal is repeated after lost replies",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k, watchdogLease(3*time.Second))
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			e.settle()
			first := hold.Deadline()
			wire.Lose(3)
			locktest.Eventually(t, func() bool { return wire.ToLose() == 0 }, "no renewal is repeated")
			locktest.Eventually(t, func() bool { return hold.Deadline().After(first) || hold.Err() != nil },
				"it is not renewed")
			require.NoError(t, hold.Err())
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a renewal that finds the lock gone ends the hold",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, watchdogLease(3*time.Second))
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			until := hold.Deadline()
			e.doAll(t, "FLUSHALL")
			next := locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Lease(time.Minute))
			locktest.Receive(t, hold.Done(), "it goes on")
			require.True(t, time.Now().Before(until), "no renewal has told")
			requireLostBy(t, hold, rlock.ErrGone)
			require.True(t, next.Valid(), "it renews a lock of another owner")
			locktest.Unlock(t, next)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a renewal that is executed after the loss is undone",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k, watchdogLease(3*time.Second))
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			wire.settle(t, e)
			wire.Hold()
			locktest.Receive(t, hold.Done(), "it is valid without a reply")
			wire.Pass()
			// The last renewal may have been executed just before.
			locktest.Within(t, e.atMost(2*time.Second), func() { e.RequireNothingLeft(t) })
		},
	},
	{
		Name:  "Options.MaxHold ends renewals, also of nested holds, but no explicit lease",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, func(o *rlock.Options) { o.MaxHold = 3 * time.Minute })
			lock := k.New(p, "lock")
			explicit := locktest.Acquire(t, k.New(p, "explicit"), rlock.Lease(time.Hour))
			hold, start := locktest.Acquire(t, lock, rlock.Watchdog), time.Now()
			for hold.Err() == nil && time.Since(start) < time.Hour {
				if inner, err := lock.TryLock(hold.Context(), rlock.NoWait, rlock.Watchdog); err == nil {
					require.NoError(t, inner.Unlock())
				}
				time.Sleep(7 * time.Second)
			}
			require.GreaterOrEqual(t, time.Since(start), 2*time.Minute+30*time.Second)
			require.LessOrEqual(t, time.Since(start), 3*time.Minute+7*time.Second)
			requireLostBy(t, hold, rlock.ErrExpired)
			require.ErrorContains(t, hold.Err(), "held for Options.MaxHold, 3m0s")
			locktest.Unlock(t, locktest.Acquire(t, lock, rlock.Watchdog))
			time.Sleep(20 * time.Minute)
			require.True(t, explicit.Valid())
		},
	},
}
