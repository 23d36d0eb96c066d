package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// all is more replies than any test waits for.
const all = 1000

// Outcome: a command whose reply is lost may have been executed. It is repeated without harm while
// its caller waits, and undone when its caller has left.
var outcome = []Promise{
	{
		Name: "an acquisition whose reply is lost counts once",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			lock := k.New(p, "lock")
			first := locktest.Acquire(t, lock, rlock.Lease(time.Minute))
			locktest.Unlock(t, first)
			wire.settle(t, e)
			wire.Lose(2)
			hold, err := lock.TryLock(t.Context(), 10*time.Second, rlock.Lease(time.Minute))
			require.NoError(t, err)
			locktest.Eventually(t, func() bool { return wire.ToLose() == 0 }, "no reply was lost")
			if k.Fenced {
				require.Equal(t, first.Token()+1, hold.Token())
			}
			locktest.Unlock(t, hold) // as often as it was acquired
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "an attempt without a wait whose replies are all lost is undone",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			wire.Lose(all)
			_, err := k.New(p, "lock").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Hour))
			requireUnknown(t, k, err)
			require.Less(t, wire.ToLose(), all-1, "it was sent once")
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a nested acquisition whose reply is lost counts once",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			lock := k.New(p, "lock")
			outer := locktest.Acquire(t, lock, rlock.Lease(time.Hour))
			wire.settle(t, e)
			wire.Lose(2)
			inner, err := lock.TryLock(outer.Context(), 10*time.Second, rlock.Lease(time.Hour))
			require.NoError(t, err)
			wire.settle(t, e)

			// Redis may count a level that no hold stands for. The next level and the last release
			// ignore it.
			wire.Lose(all)
			_, err = lock.TryLock(outer.Context(), rlock.NoWait, rlock.Lease(time.Hour))
			requireUnknown(t, k, err)
			require.True(t, outer.Valid())
			wire.Lose(0)
			again, err := lock.TryLock(outer.Context(), 10*time.Second, rlock.Lease(time.Hour))
			require.NoError(t, err)
			for _, hold := range []*rlock.Hold{again, inner} {
				locktest.Unlock(t, hold)
				requireContended(t, k, e.Party(t), "lock")
			}
			locktest.Unlock(t, outer)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a release whose reply is lost is a release",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			holds := []*rlock.Hold{locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Hour))}
			if !k.Flat {
				holds = append(holds,
					locktest.AcquireWith(holds[0].Context(), t, k.New(p, "lock"), rlock.Lease(time.Hour)))
			}
			next := k.New(p, "lock")
			if k.Shared {
				next = k.Contender(p, "lock")
			}
			waiter := e.waiter(t.Context(), t, next)
			for i := len(holds) - 1; i >= 0; i-- {
				require.True(t, holds[i].Valid())
				requireContended(t, k, e.Party(t), "lock")
				wire.settle(t, e)
				wire.Lose(2)
				locktest.Unlock(t, holds[i])
				locktest.Eventually(t, func() bool { return wire.ToLose() == 0 || k.Masters > 1 && i > 0 },
					"no reply was lost")
			}
			requireKept(t, e, k, locktest.Acquired(t, waiter)) // as the only holder
		},
	},
	{
		Name: "a release whose replies are all lost frees the lock at once",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k, commandTimeout(time.Second))
			hold := locktest.Acquire(t, k.New(p, "lock"), rlock.Lease(time.Hour))
			wire.settle(t, e)
			wire.Lose(all)
			released := make(chan error, 1)
			go func() { released <- hold.Unlock() }()
			locktest.Within(t, e.atMost(500*time.Millisecond), func() { e.RequireNothingLeft(t) })
			err := locktest.Receive(t, released, "Unlock does not return")
			require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
			require.ErrorIs(t, hold.Err(), rlock.ErrReleased)
		},
	},
	{
		Name: "an acquisition whose caller has left is undone, whether or not its reply comes",
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, lost := range []bool{false, true} {
				p, wire := e.PartyOnWire(t, k)
				ctx, cancel := context.WithCancel(t.Context())
				wire.Hold()
				attempt := locktest.LockInBackground(ctx, k.New(p, "lock"), rlock.Lease(time.Hour))
				locktest.Eventually(t, func() bool { return e.Held(t) }, "it is not executed")
				cancel()
				require.ErrorIs(t, locktest.Result(t, attempt).Err, context.Canceled)
				if lost {
					wire.Break()
				}
				wire.Pass()
				e.RequireNothingLeft(t)
			}
		},
	},
	{
		Name: "an acquisition that is executed late is undone",
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 4 * time.Second
			p := e.Party(t)
			warm(t, p, k)
			e.pause(t)
			_, err := k.New(p, "lock").TryLock(t.Context(), 100*time.Millisecond, rlock.Lease(lease))
			requireUnknown(t, k, err)
			time.Sleep(lease) // it begins when the servers go on
			e.resume(t)
			e.settle() // they have executed it
			locktest.Within(t, lease/2, func() { e.RequireNothingLeft(t) })
		},
	},
	{
		Name: "an owner whose acquisition is being undone acquires again, and keeps the lock",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			lock, owner := k.New(p, "lock"), rlock.WithOwner(t.Context())
			for range 5 {
				ctx, cancel := context.WithCancel(owner)
				wire.Hold()
				attempt := locktest.LockInBackground(ctx, lock, rlock.Lease(time.Hour))
				locktest.Eventually(t, func() bool { return e.Held(t) }, "it is not executed")
				cancel()
				require.ErrorIs(t, locktest.Result(t, attempt).Err, context.Canceled)
				again := locktest.LockInBackground(owner, lock, rlock.Lease(time.Hour))
				wire.Pass()
				requireKept(t, e, k, locktest.Acquired(t, again))
			}
		},
	},
	{
		Name: "an owner whose release is unconfirmed acquires again, and keeps the lock",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k, commandTimeout(time.Second))
			lock, owner := k.New(p, "lock"), rlock.WithOwner(t.Context())
			for _, executed := range []bool{false, true} {
				hold := locktest.AcquireWith(owner, t, lock, rlock.Lease(time.Hour))
				wire.settle(t, e)
				if executed {
					wire.Hold()
				} else {
					e.pause(t)
				}
				require.ErrorIs(t, hold.Unlock(), rlock.ErrOutcomeUnknown)
				again := locktest.LockInBackground(owner, lock, rlock.Lease(time.Hour))
				wire.Pass()
				e.resume(t)
				next := locktest.Acquired(t, again)
				require.NotEqual(t, hold.Owner(), next.Owner())
				requireKept(t, e, k, next)
			}
		},
	},
	{
		Name: "a nested acquisition without a reply does not outlive the hold",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, waits := range []bool{true, false} {
				p, wire := e.PartyOnWire(t, k)
				lock := k.New(p, "lock")
				hold := locktest.Acquire(t, lock, rlock.Lease(3*time.Second))
				wire.settle(t, e)
				if waits { // beyond the end of the lease
					wire.Hold()
				} else {
					wire.Lose(all)
				}
				_, err := lock.TryLock(hold.Context(), 100*time.Millisecond, rlock.Lease(time.Hour))
				requireUnknown(t, k, err)
				require.True(t, hold.Valid())
				locktest.Receive(t, hold.Done(), "it lasts longer")
				requireLostBy(t, hold, rlock.ErrExpired)
				wire.Pass()
				e.RequireNothingLeft(t)
			}
		},
	},
}

// requireKept requires that nothing undoes a hold, and releases it.
func requireKept(t *testing.T, e *Env, k Kind, hold *rlock.Hold) {
	t.Helper()
	time.Sleep(50 * time.Millisecond) // what is to be undone is undone by then
	requireContended(t, k, e.Party(t), "lock")
	require.True(t, hold.Valid())
	locktest.Unlock(t, hold)
	e.RequireNothingLeft(t)
	e.settle()
}
