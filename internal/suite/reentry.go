package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Re-entry: an owner acquires what it holds once more, and releases it as often.
var reentry = []Promise{
	{
		Name: "the owner re-enters at once, although others wait",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			outer := locktest.Acquire(t, lock, rlock.Watchdog)
			waiter := locktest.LockInBackground(t.Context(), k.Contender(e.Party(t), "lock"),
				rlock.Watchdog)
			e.settle()
			for _, wait := range []time.Duration{rlock.NoWait, time.Minute, rlock.Forever} {
				inner, err := lock.TryLock(outer.Context(), wait, rlock.Watchdog)
				require.NoError(t, err)
				require.Equal(t, outer.Owner(), inner.Owner())
				locktest.Unlock(t, inner)
			}
			require.Empty(t, waiter)
			locktest.Unlock(t, outer)
			locktest.Unlock(t, locktest.Acquired(t, waiter))
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "it is free after as many unlocks as locks, in any order",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, other := k.New(e.Party(t), "lock"), k.Contender(e.Party(t), "lock")
			for _, order := range [][]int{{2, 1, 0}, {0, 1, 2}, {1, 0, 2}} {
				holds := k.nest(rlock.WithOwner(t.Context()), t, lock, rlock.Watchdog)
				for _, i := range order {
					requireBusy(t, other)
					require.True(t, holds[i].Valid(), "another level was released")
					locktest.Unlock(t, holds[i])
					require.ErrorIs(t, holds[i].Err(), rlock.ErrReleased)
				}
				e.RequireNothingLeft(t) // on any master
				locktest.Unlock(t, locktest.Acquire(t, other, rlock.Watchdog))
				e.RequireNothingLeft(t)
			}
		},
	},
	{
		Name:  "nested locks share the longest of their leases",
		Kept:  nests,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, other := e.Party(t), e.Party(t)
			for name, leases := range map[string][]time.Duration{
				"long, short": {time.Minute, time.Second}, "short, long": {time.Second, time.Minute},
				"all": {30 * time.Second, time.Minute, time.Second},
			} {
				lock := k.New(p, name)
				var holds []*rlock.Hold
				ctx, start := rlock.WithOwner(t.Context()), time.Now()
				for _, lease := range leases {
					holds = append(holds, locktest.AcquireWith(ctx, t, lock, rlock.Lease(lease)))
				}
				for range len(leases) - 1 {
					require.NoError(t, lock.Unlock(ctx))
				}
				waiter := locktest.LockInBackground(t.Context(), k.Contender(other, name),
					rlock.Watchdog)
				require.Zero(t, holds[0].Deadline().Sub(watchdog.Deadline(start, time.Minute)))
				requireExpires(t, holds[0])
				locktest.Unlock(t, acquiredAfter(t, holds[0].Deadline(), waiter))
				require.ErrorIs(t, holds[0].Unlock(), rlock.ErrLost)
			}
		},
	},
	{
		Name:  "it is renewed while one of its levels wants that",
		Kept:  nests,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			outer := locktest.Acquire(t, lock, rlock.Lease(time.Second))
			inner := locktest.AcquireWith(outer.Context(), t, lock, rlock.Watchdog)
			time.Sleep(5 * time.Minute)
			require.True(t, outer.Valid())
			locktest.Unlock(t, inner)
			requireExpires(t, outer)
		},
	},
	{
		Name: "one owner holds two locks, each for itself",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, other := e.Party(t), e.Party(t)
			first := locktest.Acquire(t, k.New(p, "first"), rlock.Watchdog)
			second := locktest.AcquireWith(first.Context(), t, k.New(p, "second"), rlock.Watchdog)
			locktest.Unlock(t, first)
			locktest.Unlock(t, locktest.Acquire(t, k.Contender(other, "first"), rlock.Watchdog))
			requireBusy(t, k.Contender(other, "second"))
			locktest.Unlock(t, second)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a lock that does not nest refuses its owner at once",
		Kept: func(k Kind) bool { return k.Flat },
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			for _, wait := range []time.Duration{rlock.NoWait, time.Minute, rlock.Forever} {
				_, err := lock.TryLock(hold.Context(), wait, rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrReentry)
				require.NotErrorIs(t, err, rlock.ErrNotAcquired, "waiting does not help")
			}
			require.True(t, hold.Valid())
			locktest.Unlock(t, hold)
			locktest.Unlock(t, locktest.Acquire(t, lock, rlock.Watchdog))
		},
	},
}
