package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

func prefixed(o *rlock.Options) { o.NameMapper = rlock.Prefix("app:") }

// Names: what a name may be, and when two names are two locks.
var names = []Promise{
	{
		Name: "every name works, and a release wakes its waiters",
		Test: func(t *testing.T, e *Env, k Kind) {
			p, other := e.Party(t), e.Party(t)
			every := []string{"order:42 ü", "{tag}rest", "before{tag}after", "{x}", "*?"}
			if !e.clustered() { // where a hash tag must be complete
				every = append(every, "foo}bar", "a{b", "x{}y")
			}
			for _, name := range every {
				hold := locktest.Acquire(t, k.Contender(p, name), rlock.Watchdog)
				waiter := e.waiter(t.Context(), t, k.New(other, name))
				e.requireWaiting(t, waiter)
				released := time.Now()
				locktest.Unlock(t, hold)
				e.requireNext(t, released, waiter)
			}
			e.requireQuiet(t)
		},
	},
	{
		// Redisson derives the channel of "lock" and that of "{lock}" alike.
		Name: "locks whose names have one channel are two locks, and wake their own waiters",
		Kept: queuesHere, // fair locks of such names share their queue in Redis
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, mode := range []rlock.HandOver{
				rlock.HandOverAnywhere, rlock.HandOverLocal, rlock.HandOverNone,
			} {
				set := func(o *rlock.Options) { o.HandOver = mode }
				p, other, both := e.Party(t, set), e.Party(t, set), []string{"lock", "{lock}"}
				for _, first := range []int{0, 1} {
					holds := make(map[string]*rlock.Hold)
					waiters := make(map[string]<-chan locktest.Outcome)
					for _, name := range both {
						holds[name] = locktest.Acquired(t, locktest.LockInBackground(t.Context(),
							k.Contender(p, name), rlock.Watchdog))
					}
					for _, name := range both {
						waiters[name] = e.waiter(t.Context(), t, k.New(other, name))
					}
					for _, name := range []string{both[first], both[1-first]} {
						for _, waiter := range waiters {
							e.requireWaiting(t, waiter)
						}
						released := time.Now()
						locktest.Unlock(t, holds[name])
						e.requireNext(t, released, waiters[name])
						delete(waiters, name)
					}
				}
			}
			e.requireQuiet(t)
		},
	},
	{
		Name: "a NameMapper maps the name of every lock",
		Test: func(t *testing.T, e *Env, k Kind) {
			mapped, plain := e.Party(t, prefixed), e.Party(t)
			lock := k.New(mapped, "lock")
			require.True(t, strings.HasPrefix(lock.Name(), "app:lock"), lock.Name())
			require.Equal(t, k.New(plain, "app:lock").Name(), lock.Name())
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			require.Equal(t, lock.Name(), hold.Name())
			_, err := k.Contender(plain, "app:lock").TryLock(t.Context(), rlock.NoWait,
				rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			require.ErrorContains(t, err, "app:lock")
			locktest.Unlock(t, locktest.Acquire(t, k.Contender(plain, "lock"), rlock.Watchdog))
			waiter := e.waiter(t.Context(), t, k.Contender(e.Party(t, prefixed), "lock"))
			released := time.Now()
			locktest.Unlock(t, hold)
			e.requireNext(t, released, waiter)
		},
	},
	{
		Name: "the name of a key that another lock has is rejected, and nothing is sent",
		Kept: func(k Kind) bool { return k.Name != "multilock" }, // its parts have names of their own
		Test: func(t *testing.T, e *Env, k Kind) {
			const client = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11"
			p, before := e.Party(t, anonymous), e.scripts(t)
			taken := []string{
				wire.FairChannel("x", client+":1"), wire.Prefix("redisson_unlock_latch", "x") + ":0123",
				wire.ClientKey(client), wire.EpochKey,
			}
			for _, name := range []string{"x", "{x}", "x{y}z"} {
				for _, derived := range wire.Related(name) {
					derived = strings.ReplaceAll(derived, ":owner:", ":"+client+":1:")
					if strings.HasSuffix(derived, ":rwlock_timeout") {
						derived += ":1"
					}
					taken = append(taken, derived)
				}
			}
			for _, name := range taken {
				_, err := k.New(p, name).TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
				require.ErrorIs(t, err, rlock.ErrInvalid, name)
				require.ErrorContains(t, err, "use another name")
			}
			mapped := e.Party(t, anonymous,
				func(o *rlock.Options) { o.NameMapper = rlock.Prefix("holdfast_lock_turn:") })
			_, err := k.New(mapped, "{x}").TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrInvalid, "what counts is the name in Redis")
			require.Equal(t, before, e.scripts(t))
			for _, name := range []string{
				"redisson_lock_queue", "redisson_lock_queue:x", "app:redisson_lock_queue:{x}",
				"{x}:rwlock_timeout:1", "{x}:" + client + ":1", "holdfast_job:{x}",
			} {
				hold := locktest.Acquire(t, k.New(p, name), rlock.Watchdog)
				locktest.Unlock(t, hold)
			}
		},
	},
}
