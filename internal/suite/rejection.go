package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Servers reject commands for now, which a wait outlasts, or for good.
var rejection = []Promise{
	{
		Name: "an attempt without a wait says at once why it is rejected",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			for code, class := range map[string]rlock.Class{
				temporary: rlock.ClassTemporary, permanent: rlock.ClassPermanent,
			} {
				e.Reject(t, code)
				locktest.Within(t, e.atMost(time.Second), func() {
					_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
					requireRejected(t, err, code)
					var rejected *rlock.ServerError
					require.ErrorAs(t, err, &rejected)
					require.Equal(t, class, rejected.Class)
					require.NotEmpty(t, rejected.Advice)
				})
				e.Reject(t, "")
			}
			locktest.Unlock(t, locktest.Acquire(t, lock, rlock.Lease(time.Minute)))
		},
	},
	{
		Name: "a rejection for good ends each wait and each release at once",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "held"), rlock.Lease(4*time.Second))
			e.Reject(t, permanent)
			locktest.Within(t, e.atMost(time.Second), func() {
				_, err := k.New(p, "lock").TryLock(t.Context(), time.Minute, rlock.Lease(time.Minute))
				requireRejected(t, err, permanent)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = k.New(p, "lock").Lock(ctx, rlock.Watchdog)
				requireRejected(t, err, permanent)
				err = hold.Unlock()
				require.ErrorContains(t, err, permanent)
				if k.Masters == 1 { // a RedLock has not been released by a quorum
					require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
				}
			})
			require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
			e.Reject(t, "")
			e.RequireNothingLeft(t) // when the lease is over
		},
	},
	{
		Name: "a wait and a release outlast a rejection for now",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "held"), rlock.Lease(time.Minute))
			e.Reject(t, temporary)
			waiter := locktest.LockInBackground(t.Context(), k.New(p, "lock"), rlock.Lease(time.Minute))
			released := make(chan error, 1)
			go func() { released <- hold.Unlock() }()
			time.Sleep(time.Second)
			require.Empty(t, waiter)
			require.Empty(t, released)
			e.Reject(t, "")
			locktest.Unlock(t, locktest.Acquired(t, waiter))
			require.NoError(t, locktest.Receive(t, released, "the release does not end"))
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "a release that is rejected for too long is finished in the background",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Lease(time.Minute))
			e.Reject(t, temporary)
			start := time.Now()
			err := hold.Unlock()
			require.Equal(t, 3*time.Second, time.Since(start))
			require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			require.ErrorContains(t, err, temporary)
			require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
			time.Sleep(10 * time.Second)
			e.Reject(t, "")
			locktest.Within(t, e.atMost(time.Second), func() { e.RequireNothingLeft(t) })
		},
	},
	{
		Name:  "a wait that ends while servers reject for now says so",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			e.Reject(t, temporary)
			start := time.Now()
			_, err := k.New(p, "lock").TryLock(t.Context(), 3*time.Second, rlock.Lease(time.Minute))
			require.Equal(t, 3*time.Second, time.Since(start))
			requireRejected(t, err, temporary)

			// The last command has no reply. The error says what was known before.
			waiter := locktest.InBackground(func() (*rlock.Hold, error) {
				return k.New(p, "lock").TryLock(t.Context(), 3*time.Second, rlock.Lease(time.Minute))
			})
			time.Sleep(time.Second)
			e.pause(t)
			o := locktest.Result(t, waiter)
			require.ErrorContains(t, o.Err, temporary)
			require.NotErrorIs(t, o.Err, rlock.ErrNotAcquired)
		},
	},
	{
		Name:  "an outcome stays unknown while the servers reject the next command",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			wire.Hold()
			waiter := locktest.InBackground(func() (*rlock.Hold, error) {
				return k.New(p, "lock").TryLock(t.Context(), 3*time.Second, rlock.Lease(time.Minute))
			})
			locktest.Eventually(t, func() bool { return e.Held(t) }, "it is not executed")
			e.Reject(t, temporary)
			wire.Break()
			wire.Pass()
			err := locktest.Result(t, waiter).Err
			require.ErrorContains(t, err, temporary)
			require.NotErrorIs(t, err, rlock.ErrNotAcquired)
			if k.Name != "multilock" { // which reports what is wrong now
				requireUnknown(t, k, err)
			}
			e.Reject(t, "")
			e.RequireNothingLeft(t)
		},
	},
}

// requireRejected requires the error of an acquisition that the servers have rejected.
func requireRejected(t *testing.T, err error, code string) {
	t.Helper()
	require.ErrorContains(t, err, code)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
}
