package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Restart: servers end and come back, with what they had or without.
var restart = []Promise{
	{
		Name: "a restart that forgets the lock ends its hold at the next renewal",
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 9 * time.Second
			p, ctx := e.Party(t, func(o *rlock.Options) { o.WatchdogLease = lease }),
				rlock.WithOwner(t.Context())
			holds := k.nest(ctx, t, k.New(p, "lock"), rlock.Watchdog)
			e.settle()
			deadline := holds[0].Deadline()
			for _, s := range e.Servers {
				s.Restart(t)
			}
			for _, hold := range holds {
				requireLost(t, hold)
				require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
			}
			require.True(t, time.Now().Before(deadline), "its lease was over")
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a hold goes on after an outage that its lease outlasts",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, ctx := e.Party(t, func(o *rlock.Options) { o.WatchdogLease = 6 * time.Second }),
				rlock.WithOwner(t.Context())
			holds := k.nest(ctx, t, k.New(p, "lock"), rlock.Watchdog)
			waiter := locktest.LockInBackground(t.Context(), k.Contender(e.Party(t), "lock"),
				rlock.Watchdog)
			e.settle()
			before := holds[0].Deadline()
			for _, s := range e.Servers {
				s.Disconnect(t)
			}
			time.Sleep(2500 * time.Millisecond) // a renewal fails
			for _, s := range e.Servers {
				s.Connect(t)
			}
			locktest.Eventually(t, func() bool { return holds[0].Deadline().After(before) },
				"it is not renewed")
			require.Empty(t, waiter)
			for _, hold := range holds {
				require.True(t, hold.Valid())
				locktest.Unlock(t, hold)
			}
			released := time.Now()
			locktest.Unlock(t, locktest.Acquired(t, waiter))
			require.Less(t, time.Since(released), locktest.Missed)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a waiter gets a lock that a restart has freed",
		Test: func(t *testing.T, e *Env, k Kind) {
			locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Lease(time.Hour))
			waiter := locktest.LockInBackground(
				t.Context(),
				k.New(e.Party(t), "lock"),
				rlock.Lease(time.Hour),
			)
			e.settle()
			for _, s := range e.Servers {
				s.Restart(t)
			}
			restarted := time.Now()
			locktest.Unlock(t, locktest.Acquired(t, waiter))
			require.Less(t, time.Since(restarted), locktest.Missed)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a waiter waits for servers that are down",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			locktest.Unlock(t, locktest.Acquire(t, lock, rlock.Lease(time.Hour))) // connects the client
			for _, s := range e.Servers {
				s.Kill(t)
			}
			waiter := locktest.LockInBackground(t.Context(), lock, rlock.Lease(time.Hour))
			time.Sleep(time.Second)
			require.Empty(t, waiter)
			for _, s := range e.Servers {
				s.Restart(t)
			}
			locktest.Unlock(t, locktest.Acquired(t, waiter))
			e.RequireNothingLeft(t)
		},
	},
}
