package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// keeps says which kinds [rlock.AtLeast] keeps taken.
func keeps(k Kind) bool { return k.Masters == 1 && !k.Shared && k.Name != "multilock" }

// most is the lease of a lock that AtLeast keeps: longer than all waits of these tests.
const most = rlock.Lease(time.Hour)

// AtLeast: a lock stays taken for some time after its acquisition, even if it is released earlier.
var atLeast = []Promise{
	{
		Name:  "a released lock stays taken until d after its acquisition, and a waiter then gets it",
		Kept:  keeps,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, d := range []time.Duration{4 * time.Second, 3 * time.Minute} {
				for _, lease := range []rlock.Lease{rlock.Watchdog, rlock.Lease(10 * time.Second), most} {
					other := e.Party(t)
					lock := rlock.AtLeast(k.New(e.Party(t), "lock"), d)
					acquired := time.Now()
					hold := locktest.Acquire(t, lock, lease)
					waiter := e.waiter(t.Context(), t, k.Contender(e.Party(t), "lock"))
					time.Sleep(time.Second)
					released := time.Now()
					require.NoError(t, hold.Unlock())
					require.Zero(t, time.Since(released), "the caller is kept")
					require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
					require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrReleased)
					require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)

					time.Sleep(d / 2)
					requireContended(t, k, other, "lock")
					e.requireKeptUntil(t, acquired.Add(d), waiter)
					e.RequireNothingLeft(t)
				}
			}
		},
	},
	{
		Name: "a waiter learns that the lock is taken for less than its lease",
		Kept: keeps,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := rlock.AtLeast(k.New(e.Party(t), "lock"), time.Second)
			hold := locktest.Acquire(t, lock, most)
			acquired := time.Now()
			waiter := e.waiter(t.Context(), t, k.Contender(e.Party(t), "lock"))
			locktest.Unlock(t, hold)
			next := locktest.Result(t, waiter)
			require.NoError(t, next.Err)
			require.GreaterOrEqual(t, next.At.Sub(acquired), time.Second-soonest)
			require.Less(t, next.At.Sub(acquired), e.atMost(2*time.Second))
			locktest.Unlock(t, next.Hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "a release after d frees the lock at once",
		Kept:  keeps,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, rlock.AtLeast(k.New(e.Party(t), "lock"), time.Minute),
				rlock.Watchdog)
			waiter := e.waiter(t.Context(), t, k.Contender(e.Party(t), "lock"))
			time.Sleep(time.Minute)
			released := time.Now()
			locktest.Unlock(t, hold)
			locktest.Unlock(t, e.acquiredSince(t, released, waiter))
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "the owner of a kept lock waits for it as everybody does",
		Kept:  keeps,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := rlock.AtLeast(k.New(e.Party(t), "lock"), time.Minute)
			ctx, acquired := rlock.WithOwner(t.Context()), time.Now()
			locktest.Unlock(t, locktest.AcquireWith(ctx, t, lock, rlock.Watchdog))
			require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
			_, err := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.ErrorContains(t, err, "kept by rlock.AtLeast for another 1m0s; retry later")
			e.requireKeptUntil(t, acquired.Add(time.Minute), e.waiter(ctx, t, lock))
			requireContended(t, k, e.Party(t), "lock")
		},
	},
	{
		Name:  "each hold keeps the lock until d after its own acquisition",
		Kept:  func(k Kind) bool { return keeps(k) && nests(k) },
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			outer := locktest.Acquire(t, rlock.AtLeast(lock, 10*time.Second), rlock.Watchdog)
			time.Sleep(5 * time.Second)
			inner := locktest.AcquireWith(outer.Context(), t, rlock.AtLeast(lock, 20*time.Second),
				rlock.Watchdog)
			last := locktest.AcquireWith(outer.Context(), t, lock, rlock.Watchdog)
			acquired := time.Now()
			for _, hold := range []*rlock.Hold{last, inner, outer} {
				locktest.Unlock(t, hold)
			}
			waiter := e.waiter(t.Context(), t, k.Contender(e.Party(t), "lock"))
			e.requireKeptUntil(t, acquired.Add(20*time.Second), waiter)
		},
	},
	{
		Name:  "Close does not end a kept lock, and ReleaseOnClose keeps it",
		Kept:  keeps,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, early := range []bool{true, false} {
				p := e.Party(t, releaseOnClose)
				acquired := time.Now()
				hold := locktest.Acquire(t, rlock.AtLeast(k.New(p, "lock"), time.Minute), most)
				if early {
					locktest.Unlock(t, hold)
				}
				p.close(t)
				require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
				waiter := e.waiter(t.Context(), t, k.Contender(e.Party(t), "lock"))
				e.requireKeptUntil(t, acquired.Add(time.Minute), waiter)
			}
		},
	},
	{
		Name:  "a release without a reply is repeated, and keeps the lock until d",
		Kept:  keeps,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, name := range []string{"executed", "not executed"} {
				p, wire := e.PartyOnWire(t, k)
				acquired := time.Now()
				hold := locktest.Acquire(t, rlock.AtLeast(k.New(p, name), time.Minute), rlock.Watchdog)
				waiter := e.waiter(t.Context(), t, k.Contender(e.Party(t), name))
				if name == "executed" {
					wire.Lose(2)
					locktest.Unlock(t, hold)
				} else {
					e.pause(t)
					require.ErrorIs(t, hold.Unlock(), rlock.ErrOutcomeUnknown)
					e.resume(t)
				}
				e.requireKeptUntil(t, acquired.Add(time.Minute), waiter)
				e.RequireNothingLeft(t)
			}
		},
	},
	{
		Name:  "a lock that was acquired in a local turn is not passed on before d",
		Kept:  takesTurns,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t, anonymous), "lock")
			hold, waiters := e.hot(t, lock, 1)
			waiter := e.waiter(t.Context(), t, rlock.AtLeast(lock, time.Minute))
			last := e.waiter(t.Context(), t, lock)
			locktest.Unlock(t, hold)
			hold = locktest.Acquired(t, waiters[0])
			acquired, before := time.Now(), e.scripts(t)
			locktest.Unlock(t, hold)
			hold = locktest.Acquired(t, waiter)
			require.Equal(t, before, e.scripts(t), "it was no turn")
			locktest.Unlock(t, hold)
			e.requireKeptUntil(t, acquired.Add(time.Minute), last)
		},
	},
	{
		Name:  "a lost lock is not kept",
		Kept:  keeps,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, other := e.Party(t), k.Contender(e.Party(t), "lock")
			hold := locktest.Acquire(t, rlock.AtLeast(k.New(p, "lock"), time.Hour), most)
			k.force(t, p, "lock")
			next := locktest.Acquire(t, other, rlock.Watchdog)
			require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			require.True(t, next.Valid())
			locktest.Unlock(t, next)
			e.RequireNothingLeft(t)

			expired := locktest.Acquire(t, rlock.AtLeast(k.New(p, "lock"), time.Hour),
				rlock.Lease(30*time.Second))
			waiter := locktest.LockInBackground(t.Context(), other, rlock.Watchdog)
			requireExpires(t, expired)
			require.ErrorIs(t, expired.Unlock(), rlock.ErrLost)
			locktest.Unlock(t, acquiredAfter(t, expired.Deadline(), waiter))
			e.RequireNothingLeft(t)
		},
	},
}

// requireKeptUntil requires that a waiter gets the lock at an instant, to the millisecond, and
// releases it.
func (e *Env) requireKeptUntil(
	t *testing.T, until time.Time, waiter <-chan locktest.Outcome,
) {
	t.Helper()
	time.Sleep(time.Until(until) - time.Millisecond)
	e.requireWaiting(t, waiter)
	next := locktest.Result(t, waiter)
	require.NoError(t, next.Err)
	late := next.At.Sub(until)
	require.True(t, late >= 0 && late < time.Millisecond, late)
	locktest.Unlock(t, next.Hold)
}

// soonest is how much earlier than its request the server may count a lock as acquired.
const soonest = 100 * time.Millisecond
