package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Connections: they may break at any time, and neither holds nor waiters depend on them.
var connections = []Promise{
	{
		Name: "a waiter whose connections break is woken by a release all the same",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Watchdog)
			waiters := e.waiters(t.Context(), t, 2, k.New(p, "lock"))
			for range 3 {
				e.breakConnections(t)
				e.requireListening(t)
			}
			e.requireWaiting(t, waiters...)
			released := time.Now()
			locktest.Unlock(t, hold)
			for range waiters {
				next := anyOf(t, waiters)
				require.Less(t, time.Since(released), e.atMost(reconnects))
				locktest.Unlock(t, next)
			}
			e.requireQuiet(t)
		},
	},
	{
		Name:  "a waiter that was cut off during the release gets the lock once it is back",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Watchdog)
			e.everywhere(t, k, "lock")
			waiter := e.waiter(t.Context(), t, k.New(e.Party(t), "lock"))
			hold.Leave()
			for _, s := range e.Servers {
				s.(inProcess).SetDown(true)
				for _, key := range s.Keys(t) {
					s.(inProcess).Redis().Del(key)
				}
			}
			time.Sleep(time.Second)
			e.requireWaiting(t, waiter)
			for _, s := range e.Servers {
				s.(inProcess).SetDown(false)
			}
			back := time.Now()
			o := locktest.Result(t, waiter)
			require.NoError(t, o.Err)
			require.Less(t, o.At.Sub(back), reconnects)
			locktest.Unlock(t, o.Hold)
		},
	},
	{
		Name: "a hold survives broken connections, and is renewed",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, func(o *rlock.Options) { o.WatchdogLease = 6 * time.Second })
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			for range 2 {
				e.breakConnections(t)
				before := hold.Deadline()
				locktest.Eventually(t, func() bool {
					return hold.Err() != nil || hold.Deadline().After(before)
				}, "it is not renewed")
				require.NoError(t, hold.Err())
			}
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "the first call after idle connections were closed succeeds",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			lock := k.New(p, "lock")
			// With a context that cannot end, callers send commands themselves.
			for _, ctx := range []context.Context{t.Context(), context.Background()} {
				e.breakConnections(t)
				hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(time.Minute))
				require.NoError(t, err)
				e.settle() // until all masters have it
				e.breakConnections(t)
				require.NoError(t, hold.Extend(ctx, rlock.Lease(2*time.Minute)))
				if !k.Flat {
					e.breakConnections(t)
					nested, err := lock.TryLock(hold.Context(), rlock.NoWait, rlock.Lease(time.Minute))
					require.NoError(t, err)
					require.NoError(t, nested.Unlock())
				}
				e.breakConnections(t)
				require.NoError(t, hold.Unlock())
			}
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "after a restart that lost everything, the client soon knows that it holds nothing",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, func(o *rlock.Options) { o.WatchdogLease = time.Minute })
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			e.everywhere(t, k, "lock")
			time.Sleep(time.Second)
			for _, s := range e.Servers {
				s.(inProcess).Redis().FlushAll()
			}
			e.breakConnections(t)
			restarted := time.Now()
			_, err := k.New(p, "another").TryLock(t.Context(), time.Second, rlock.Lease(time.Minute))
			require.NoError(t, err, "only by its next command it knows of the connection")
			<-hold.Done()
			require.ErrorIs(t, hold.Err(), rlock.ErrLost)
			require.Less(t, time.Since(restarted), reconnects, "only the next renewal noticed it")
		},
	},
}

// reconnects is how long a client may need for new connections. It is less than the 5 s after which
// a waiter asks by itself.
const reconnects = 2 * time.Second

// breakConnections breaks all connections. Clients may connect again at once.
func (e *Env) breakConnections(t *testing.T) {
	t.Helper()
	for _, s := range e.Servers {
		if s, virtual := s.(inProcess); virtual {
			s.SetDown(true)
			s.SetDown(false)
			continue
		}
		for _, kind := range []string{"normal", "pubsub"} {
			s.Do(t, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
		}
	}
	e.settle()
}
