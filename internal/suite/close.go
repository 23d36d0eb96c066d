package suite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func releaseOnClose(o *rlock.Options) { o.ReleaseOnClose = true }

// close closes the clients of a party.
func (p *Party) close(t *testing.T) {
	t.Helper()
	for _, c := range p.Clients {
		locktest.CloseClient(t, c)
	}
}

// Close: the end of a client ends its waits and its holds.
var closing = []Promise{
	{
		Name: "Close ends the waits of its client with ErrClosed, and no others",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, other := e.Party(t), e.Party(t)
			lock, hold := e.held(t, k)
			staying := append(e.waiters(t.Context(), t, 2, k.New(other, "lock")),
				e.waiter(t.Context(), t, lock))
			leaving := e.waiters(t.Context(), t, 3, k.New(p, "lock"))
			closed := time.Now()
			p.close(t)
			for _, w := range leaving {
				o := locktest.Result(t, w)
				require.ErrorIs(t, o.Err, rlock.ErrClosed)
				require.NotErrorIs(t, o.Err, rlock.ErrNotAcquired)
				require.NotErrorIs(t, o.Err, rlock.ErrLost)
				require.Less(t, o.At.Sub(closed), e.atMost(leaves))
			}
			e.requireWaiting(t, staying...)
			locktest.Unlock(t, hold)
			for range staying {
				locktest.Unlock(t, anyOf(t, staying))
			}
			e.requireQuiet(t)
		},
	},
	{
		Name:  "when Close returns, no waiter of the client is left in Redis",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			_, hold := e.held(t, k)
			p := e.Party(t)
			waiters := e.waiters(t.Context(), t, 5, k.New(p, "lock"))
			p.close(t)
			require.Empty(t, e.known(t))
			for _, s := range e.Servers {
				require.Empty(t, channels(t, s))
			}
			for _, w := range waiters {
				require.ErrorIs(t, locktest.Result(t, w).Err, rlock.ErrClosed)
			}
			require.True(t, hold.Valid())
		},
	},
	{
		Name: "a client that is closed acquires nothing and sends nothing",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, anonymous)
			lock := k.New(p, "lock")
			p.close(t)
			before := e.scripts(t)
			for _, wait := range []time.Duration{rlock.NoWait, time.Minute, rlock.Forever} {
				_, err := lock.TryLock(t.Context(), wait, rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrClosed)
				require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			}
			require.Equal(t, before, e.scripts(t))
			require.Empty(t, e.keys(t))
		},
	},
	{
		Name: "Close ends holds, and the lock stays until its lease ends",
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 2 * time.Second
			p := e.Party(t, func(o *rlock.Options) { o.WatchdogLease = lease })
			other := k.Contender(e.Party(t), "lock")
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			e.everywhere(t, k, "lock")
			p.close(t)
			require.ErrorIs(t, hold.Err(), e.closed(k, hold.Err()))
			require.Equal(t, hold.Err(), context.Cause(hold.Context()))
			require.False(t, hold.Valid())
			if k.Masters == 1 { // a RedLock is released
				_, err := other.TryLock(t.Context(), lease/4, rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrNotAcquired)
			}
			next, err := other.TryLock(t.Context(), lease+soon, rlock.Watchdog)
			require.NoError(t, err, "it is renewed")
			locktest.Unlock(t, next)
		},
	},
	{
		Name: "a hold can be released after Close",
		Kept: func(k Kind) bool { return k.Masters == 1 },
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			p.close(t)
			locktest.Unlock(t, hold)
			require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "with ReleaseOnClose, Close releases everything, and the next waiters get it",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, releaseOnClose)
			hold := locktest.Acquire(t, k.Contender(p, "lock"), rlock.Watchdog)
			if !k.Flat {
				locktest.AcquireWith(hold.Context(), t, k.Contender(p, "lock"), rlock.Lease(time.Minute))
			}
			more := locktest.Acquire(t, k.New(p, "more"), rlock.Lease(time.Minute))
			e.everywhere(t, k, "more")
			waiter := e.waiter(t.Context(), t, k.New(e.Party(t), "lock"))
			closed := time.Now()
			p.close(t)
			for _, h := range []*rlock.Hold{hold, more} {
				want := rlock.ErrReleased
				if k.Masters > 1 {
					want = e.closed(k, h.Err())
				}
				require.ErrorIs(t, h.Err(), want)
			}
			require.Error(t, hold.Unlock())
			e.requireNext(t, closed, waiter)
			e.requireQuiet(t)
		},
	},
	{
		Name: "Close may be called many times, and at the same time",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			var closing sync.WaitGroup
			for range 8 {
				for _, c := range p.Clients {
					closing.Go(func() { assert.NoError(t, c.Close(context.Background())) })
				}
			}
			closing.Wait()
			p.close(t)
		},
	},
	{
		Name: "Close on a server that hangs is bounded by its context, and finished later",
		Test: func(t *testing.T, e *Env, k Kind) {
			const limit = 300 * time.Millisecond
			p := e.Party(t, anonymous)
			locktest.Unlock(t, locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog))
			e.settle()
			e.pause(t)
			attempt := e.waiter(t.Context(), t, k.New(p, "lock"))
			closed := time.Now()
			for _, c := range p.Clients {
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				err := c.Close(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "give Close a context that lasts")
				e.requireTook(t, limit, time.Since(start))
			}
			o := locktest.Result(t, attempt)
			require.ErrorIs(t, o.Err, rlock.ErrClosed)
			require.Less(t, o.At.Sub(closed), e.atMost(time.Duration(k.Masters)*limit))
			e.resume(t)
			p.close(t)
			e.requireQuiet(t)
		},
	},
	{
		Name:  "Close does not wait for callers that keep coming",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			var callers sync.WaitGroup
			var acquired atomic.Int64
			over := make(chan struct{})
			for range 16 {
				callers.Go(func() {
					for {
						select {
						case <-over:
							return
						case <-time.After(time.Millisecond):
						}
						hold, err := k.New(p, "lock").TryLock(t.Context(), time.Second, rlock.Lease(time.Minute))
						if err == nil {
							acquired.Add(1)
							_ = hold.Unlock() // the client may be closed
						}
					}
				})
			}
			locktest.Eventually(t, func() bool { return acquired.Load() > 50 }, "they are at work")
			p.close(t)
			time.Sleep(50 * time.Millisecond)
			close(over)
			callers.Wait()
		},
	},
	{
		Name:  "Close may come at any instant of an attempt",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			e.atAnyInstant(t, k, leaves, func(_ *Party, at time.Duration) error {
				p := e.Party(t)
				locktest.Unlock(t, locktest.Acquire(t, k.New(p, "another"), rlock.Watchdog))
				closed := make(chan struct{})
				defer func() { <-closed }()
				time.AfterFunc(at-10*time.Millisecond, func() {
					defer close(closed)
					for _, c := range p.Clients {
						assert.NoError(t, c.Close(context.Background()))
					}
				})
				hold, err := k.New(p, "lock").Lock(t.Context(), rlock.Watchdog)
				if err == nil {
					_ = hold.Unlock()
				} else {
					require.ErrorIs(t, err, rlock.ErrClosed)
				}
				return err
			})
		},
	},
}

// closed is the error that a hold must have whose client was closed. On real servers a RedLock may
// be lost instead: a master that has not replied yet is then the reason.
func (e *Env) closed(k Kind, err error) error {
	if k.Masters > 1 && !e.Virtual && errors.Is(err, redlock.ErrNoReply) {
		return rlock.ErrLost
	}
	return rlock.ErrClosed
}
