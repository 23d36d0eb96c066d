package suite

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Deadline: a hold is valid until its deadline and not a nanosecond longer. Until then no other
// owner acquires the lock.
var deadline = []Promise{
	{
		Name:  "it counts from before the command was sent and leaves a margin for the clocks",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			lock := k.New(p, "lock")
			wire.Hold()
			before := time.Now()
			attempt := locktest.LockInBackground(t.Context(), lock, rlock.Lease(30*time.Second))
			locktest.Eventually(t, func() bool { return e.Held(t) }, "it is not executed")
			executed := time.Now()
			time.Sleep(50 * time.Millisecond) // less than a RedLock waits for a node
			wire.Pass()
			hold := locktest.Acquired(t, attempt)
			requireDeadline(t, hold, before, executed, 30*time.Second)
			late := func(lease time.Duration, extend func() error) {
				wire.settle(t, e)
				wire.Hold()
				before, extended := time.Now(), make(chan error, 1)
				go func() { extended <- extend() }()
				locktest.Eventually(t, func() bool { return e.last(t, k, p, lease*9/10) },
					"it is not executed")
				executed := time.Now()
				time.Sleep(50 * time.Millisecond)
				wire.Pass()
				require.NoError(t, locktest.Receive(t, extended, "it does not return"))
				requireDeadline(t, hold, before, executed, lease)
			}
			late(time.Minute,
				func() error { return hold.Extend(t.Context(), rlock.Lease(time.Minute)) })
			if !k.Flat {
				late(time.Hour, func() error {
					_, err := lock.TryLock(hold.Context(), 10*time.Second, rlock.Lease(time.Hour))
					return err
				})
			}
		},
	},
	{
		Name:  "a hold ends exactly at its deadline, even if all renewals hang",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			for name, lease := range map[string]rlock.Lease{
				"explicit": rlock.Lease(time.Minute), "renewed": rlock.Watchdog,
			} {
				start := time.Now()
				hold := locktest.Acquire(t, k.New(p, name), lease)
				if lease > 0 {
					requireDeadline(t, hold, start, start, time.Duration(lease))
				}
				time.Sleep(25 * time.Second)
				e.pause(t)
				until := hold.Deadline()
				<-hold.Done()
				require.Zero(t, time.Since(until))
				require.Equal(t, until, hold.Deadline(), "it moves no more")
				requireLostBy(t, hold, rlock.ErrExpired)
				var lost *rlock.LostError
				require.ErrorAs(t, hold.Err(), &lost)
				require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
				require.Zero(t, time.Since(until), "the release of a lost lock is not waited for")
				e.resume(t)
			}
			time.Sleep(time.Minute)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "no other owner acquires the lock before the deadline",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, other := k.New(e.Party(t), "lock"), k.Contender(e.Party(t), "lock")
			const lease = 500 * time.Millisecond
			hold := locktest.Acquire(t, lock, rlock.Lease(lease))
			waiter := locktest.LockInBackground(t.Context(), other, rlock.Lease(time.Minute))
			locktest.Receive(t, hold.Done(), "the lease does not end")
			next := locktest.Result(t, waiter)
			require.NoError(t, next.Err)
			require.False(t, next.At.Before(hold.Deadline()))
			require.Less(t, next.At.Sub(hold.Deadline()), 2*time.Second, "it missed the end")
			require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			locktest.Unlock(t, next.Hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "nested holds end at the same instant",
		Kept:  nests,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			outer := locktest.Acquire(t, lock, rlock.Watchdog)
			time.Sleep(time.Second) // so that they would end one after the other
			inner := locktest.AcquireWith(outer.Context(), t, lock, rlock.Watchdog)
			e.pause(t)
			<-outer.Done()
			until := outer.Deadline()
			locktest.Receive(t, inner.Done(), "the inner one goes on")
			require.Zero(t, time.Since(until))
			requireLostBy(t, inner, rlock.ErrExpired)
			requireLostBy(t, outer, rlock.ErrExpired)
			require.ErrorIs(t, inner.Unlock(), rlock.ErrLost)
		},
	},
	{
		Name:  "an attempt whose reply comes after the lease fails",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			wire.Hold()
			time.AfterFunc(200*time.Millisecond, wire.Pass)
			_, err := k.New(p, "lock").TryLock(t.Context(), rlock.NoWait, rlock.Lease(100*time.Millisecond))
			require.Error(t, err)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a waiter whose reply comes after the lease gets a new lease",
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 2 * time.Second
			p, wire := e.PartyOnWire(t, k)
			wire.Hold()
			attempt := locktest.LockInBackground(t.Context(), k.New(p, "lock"), rlock.Lease(lease))
			locktest.Eventually(t, func() bool { return e.Held(t) }, "it is not executed")
			time.Sleep(lease)
			replied := time.Now()
			wire.Pass()
			hold := locktest.Acquired(t, attempt)
			require.Greater(t, hold.Deadline().Sub(replied), lease/2)
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "a hold ends in time even if the logger blocks",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			handler := &stuck{slog.DiscardHandler, make(chan struct{})}
			p := e.Party(t, func(o *rlock.Options) { o.Logger = slog.New(handler) })
			t.Cleanup(func() { close(handler.freed) })
			for _, name := range []string{"a", "b"} {
				hold := locktest.Acquire(t, k.New(p, name), rlock.Lease(10*time.Second))
				<-hold.Done()
				require.Zero(t, time.Since(hold.Deadline()))
			}
		},
	},
}

// requireDeadline requires that the deadline of a hold is that of a lease that began between two
// instants, which are the same in virtual time. The margin is 1 % of the lease and 2 ms.
func requireDeadline(
	t *testing.T, hold *rlock.Hold, earliest, latest time.Time, lease time.Duration,
) {
	t.Helper()
	trusted := lease - lease/100 - 2*time.Millisecond
	require.False(t, hold.Deadline().Before(earliest.Add(trusted)), "too early")
	require.False(t, hold.Deadline().After(latest.Add(trusted)), "too late by %v",
		hold.Deadline().Sub(latest.Add(trusted)))
}

// last reports whether all parts of "lock" last for so long on every server.
func (e *Env) last(t *testing.T, k Kind, p *Party, least time.Duration) bool {
	t.Helper()
	for _, part := range k.parts(p, "lock") {
		for _, s := range e.Servers {
			if s.Do(t, "PTTL", part.Name()).(int64) < least.Milliseconds() {
				return false
			}
		}
	}
	return true
}

// stuck is a log handler that blocks until it is freed.
type stuck struct {
	slog.Handler
	freed chan struct{}
}

func (h *stuck) Enabled(context.Context, slog.Level) bool { return true }

func (h *stuck) Handle(context.Context, slog.Record) error {
	<-h.freed
	return nil
}
