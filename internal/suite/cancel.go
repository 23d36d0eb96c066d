package suite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// errWhy is the cause of a context that is cancelled.
var errWhy = errors.New("the caller went home")

// Cancel: an attempt that is cancelled, wherever it is, ends at once and leaves nothing.
var cancel = []Promise{
	{
		Name: "a context that has ended acquires nothing and sends nothing",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t, anonymous), "lock")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errWhy)
			before := e.scripts(t)
			for _, wait := range []time.Duration{rlock.NoWait, time.Minute, rlock.Forever} {
				_, err := lock.TryLock(ctx, wait, rlock.Watchdog)
				requireCancelled(t, err)
			}
			_, err := lock.Lock(ctx, rlock.Watchdog)
			requireCancelled(t, err)
			require.Equal(t, before, e.scripts(t))
			require.Empty(t, e.keys(t))
		},
	},
	{
		Name:  "a waiter whose context is cancelled leaves at once with the cause",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, hold := e.held(t, k)
			ctx, cancel := context.WithCancelCause(t.Context())
			waiters := e.waiters(ctx, t, 3, lock)
			cancelled := time.Now()
			cancel(errWhy)
			for i, w := range waiters {
				o := locktest.Result(t, w)
				requireCancelled(t, o.Err)
				require.ErrorIs(t, o.Err, rlock.ErrNotAcquired)
				e.requireTook(t, 0, o.At.Sub(cancelled))
				if i == 0 {
					requireHeldBy(t, hold, o.Err)
				}
			}
			time.Sleep(time.Second)
			require.Empty(t, e.known(t), "their keys must not have to expire")
			require.True(t, hold.Valid())
			locktest.Unlock(t, hold)
			e.requireQuiet(t)
		},
	},
	{
		Name: "the deadline of a context ends the wait like a wait of that length",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, hold := e.held(t, k)
			const wait = 2 * time.Second
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, err := lock.TryLock(ctx, time.Minute, rlock.Watchdog)
			e.requireTook(t, wait, time.Since(start))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			locktest.Unlock(t, hold)
			e.requireQuiet(t)
		},
	},
	{
		Name: "attempts on a server that hangs end at once, and what they sent is undone",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			locktest.Unlock(t, locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog))
			e.settle()
			e.pause(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			attempts := e.waiters(ctx, t, 3, k.New(p, "lock"))
			cancelled := time.Now()
			cancel(errWhy)
			for _, a := range attempts {
				o := locktest.Result(t, a)
				requireCancelled(t, o.Err)
				require.Less(t, o.At.Sub(cancelled), e.atMost(leaves))
			}
			e.resume(t)
			e.requireQuiet(t)
		},
	},
	{
		Name:  "a context may be cancelled at any instant",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			e.atAnyInstant(t, k, late(k), func(p *Party, at time.Duration) error {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer time.AfterFunc(at, func() { cancel(errWhy) }).Stop()
				hold, err := k.New(p, "lock").Lock(ctx, rlock.Watchdog)
				if err == nil {
					locktest.Unlock(t, hold)
					return nil
				}
				requireCancelled(t, err)
				return err
			})
		},
	},
	{
		Name:  "a wait may end at any instant",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			e.atAnyInstant(t, k, late(k), func(p *Party, at time.Duration) error {
				hold, err := k.New(p, "lock").TryLock(t.Context(), at, rlock.Watchdog)
				if err == nil {
					locktest.Unlock(t, hold)
					return nil
				}
				// Even a wait that ends just after a request was sent has time for the reply.
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
				require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
				return err
			})
		},
	},
	{
		Name:  "an owner whose attempt was cancelled acquires the lock with the next one",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, owner := e.Party(t), rlock.WithOwner(t.Context())
			lock := k.New(p, "lock")
			locktest.Unlock(t, locktest.Acquire(t, lock, rlock.Watchdog))
			for range 3 {
				e.settle()
				e.pause(t)
				ctx, cancel := context.WithCancel(owner)
				attempt := e.waiter(ctx, t, lock)
				cancel()
				require.ErrorIs(t, locktest.Result(t, attempt).Err, context.Canceled)
				e.resume(t)
				hold := locktest.Acquired(t,
					locktest.LockInBackground(owner, lock, rlock.Watchdog))
				time.Sleep(500 * time.Millisecond) // what undoes the first attempt comes late
				require.True(t, hold.Valid())
				_, err := k.Contender(e.Party(t), "lock").TryLock(t.Context(), rlock.NoWait,
					rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
				locktest.Unlock(t, hold)
			}
			e.requireQuiet(t)
		},
	},
}

// requireCancelled requires the error of an attempt whose context was cancelled because of errWhy.
func requireCancelled(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errWhy)
	require.NotErrorIs(t, err, rlock.ErrLost)
}

// leaves is how long an attempt may take to end on a server that hangs.
const leaves = 250 * time.Millisecond

// delay is how slow servers are in atAnyInstant.
const delay = 4 * time.Millisecond

// late is how much later than it should an attempt may end. A MultiLock has several commands under
// way, so its caller sends a command itself, and may leave only with the reply. The MultiLock then
// releases what it has.
func late(k Kind) time.Duration {
	if k.Name == "multilock" {
		return 2 * delay
	}
	return 0
}

// atAnyInstant calls attempt again and again on servers that are slow to reply. The attempt must
// end after the given time if it does not acquire the lock before. The lock is held until half of
// the instants have passed, so the attempt may end before its first reply, while it subscribes,
// while it waits, and while the lock is handed over to it. Nothing may be left each time.
func (e *Env) atAnyInstant(
	t *testing.T, k Kind, late time.Duration, attempt func(p *Party, at time.Duration) error,
) {
	t.Helper()
	const held = 60 * time.Millisecond
	p, other := e.Party(t), e.Party(t)
	for _, party := range []*Party{p, other} { // makes the connections and loads the scripts
		locktest.Unlock(t, locktest.Acquire(t, k.New(party, "lock"), rlock.Watchdog))
		time.Sleep(time.Second)
	}
	ended := make(map[bool]int)
	for at := 10 * time.Millisecond; at < 2*held; at += delay - time.Millisecond {
		hold := locktest.Acquired(t,
			locktest.LockInBackground(t.Context(), k.Contender(other, "lock"), rlock.Watchdog))
		e.settle()
		e.slow(delay)
		time.AfterFunc(held, func() { _ = hold.Unlock() })
		start := time.Now()
		err := attempt(p, at)
		took := time.Since(start)
		ended[err != nil]++
		if err != nil {
			require.GreaterOrEqual(t, took, at, "%v", err)
			require.LessOrEqual(t, took, at+late, "%v", err)
		}
		time.Sleep(2*held - took)
		e.slow(0)
		e.RequireNothingLeft(t)
	}
	require.Positive(t, ended[true])
	require.Positive(t, ended[false])
	e.requireQuiet(t)
}
