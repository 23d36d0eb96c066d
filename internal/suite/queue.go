package suite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Queue: waiters of one process have a queue there, and only its head asks Redis.
var queue = []Promise{
	{
		Name:  "waiters of one process get the lock in the order of their arrival",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.Contender(p, "lock"), rlock.Watchdog)
			waiters := e.waiters(t.Context(), t, 5, k.New(p, "lock"))
			e.requireWaiting(t, waiters...)
			released := time.Now()
			locktest.Unlock(t, hold)
			if !k.Shared {
				e.requireNext(t, released, waiters...)
			} else {
				for _, w := range waiters {
					o := locktest.Result(t, w)
					require.NoError(t, o.Err)
					e.requireTook(t, 0, o.At.Sub(released), "readers get in together")
					defer locktest.Unlock(t, o.Hold)
				}
			}
		},
	},
	{
		Name:  "only the head of the queue asks Redis",
		Exact: true,
		// A waiter for a MultiLock first asks for all parts, and then queues for one.
		Kept: func(k Kind) bool { return queuesHere(k) && k.Name != "multilock" },
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, _ := e.held(t, k)
			e.waiter(t.Context(), t, lock)
			time.Sleep(time.Second) // until it has asked again after it began to listen
			before := e.scripts(t)
			e.waiters(t.Context(), t, 10, lock)
			require.Equal(t, before, e.scripts(t))
		},
	},
	{
		Name:  "a hand-over within a process costs no command but the release",
		Exact: true,
		Kept: func(k Kind) bool {
			return queuesHere(k) && !k.Shared && k.Name != "multilock" && k.Name != "redlock"
		},
		Test: func(t *testing.T, e *Env, k Kind) {
			const waiters = 12
			lock, hold := e.held(t, k)
			all := e.waiters(t.Context(), t, waiters, lock)
			before, released := e.scripts(t), time.Now()
			locktest.Unlock(t, hold)
			e.requireNext(t, released, all...)
			// The first waiter may have to ask, because the holder is elsewhere, and to leave a list.
			require.LessOrEqual(t, e.scripts(t)-before, 1+waiters+3)
		},
	},
	{
		Name:  "a head that leaves lets the next waiter ask at once",
		Exact: true,
		Kept:  queuesHere,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, hold := e.held(t, k)
			hold.Leave()
			ctx, leave := context.WithCancel(t.Context())
			head := e.waiter(ctx, t, lock)
			next := e.waiter(t.Context(), t, lock)
			for _, s := range e.Servers { // no message wakes anybody
				s.Do(t, append([]string{"DEL"}, s.Keys(t)...)...)
			}
			e.requireWaiting(t, head, next)
			left := time.Now()
			leave()
			require.ErrorIs(t, locktest.Result(t, head).Err, context.Canceled)
			e.requireNext(t, left, next)
			e.requireQuiet(t)
		},
	},
	{
		Name:  "a waiter that leaves from behind the head costs nothing, and keeps nobody waiting",
		Exact: true,
		Kept:  queuesHere,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, hold := e.held(t, k)
			ctx, leave := context.WithCancel(t.Context())
			head := e.waiter(t.Context(), t, lock)
			leaving := e.waiters(ctx, t, 2, lock)
			last := e.waiter(t.Context(), t, lock)
			time.Sleep(time.Second) // until the head has asked again after it began to listen
			before := e.scripts(t)
			leave()
			for _, w := range leaving {
				require.ErrorIs(t, locktest.Result(t, w).Err, rlock.ErrNotAcquired)
			}
			e.settle()
			require.Equal(t, before, e.scripts(t))
			released := time.Now()
			locktest.Unlock(t, hold)
			e.requireNext(t, released, head, last)
			e.requireQuiet(t)
		},
	},
	{
		Name:  "whichever waiters leave, the others get the lock one after the other",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, leave := range [][2]int{{1, 2}, {2, 1}, {0, 1}, {1, 0}, {0, 2}} {
				p := e.Party(t)
				hold := locktest.Acquired(t, locktest.LockInBackground(t.Context(),
					k.Contender(p, "lock"), rlock.Watchdog))
				var waiters []<-chan locktest.Outcome
				var cancels []context.CancelFunc
				for range 4 {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					waiters = append(waiters, e.waiter(ctx, t, k.New(p, "lock")))
					cancels = append(cancels, cancel)
				}
				var stay []<-chan locktest.Outcome
				for i, w := range waiters {
					if i != leave[0] && i != leave[1] {
						stay = append(stay, w)
					}
				}
				for _, i := range leave {
					cancels[i]()
					require.ErrorIs(t, locktest.Result(t, waiters[i]).Err, context.Canceled)
				}
				released := time.Now()
				locktest.Unlock(t, hold)
				e.requireNext(t, released, stay...)
			}
			e.requireQuiet(t)
		},
	},
	{
		Name:  "a hand-over to a waiter whose wait ends at that instant goes on to the next",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const wait = time.Second
			for _, elsewhere := range []bool{false, true} {
				holding := e.Party(t)
				p := holding
				if elsewhere {
					p = e.Party(t)
				}
				for range 10 {
					hold := locktest.Acquired(t, locktest.LockInBackground(t.Context(),
						k.Contender(holding, "lock"), rlock.Watchdog))
					head := try(t.Context(), k.New(p, "lock"), wait, rlock.Watchdog)
					e.settle()
					next := e.waiter(t.Context(), t, k.New(p, "lock"))
					time.Sleep(wait)
					locktest.Unlock(t, hold)
					released := time.Now()
					if o := locktest.Result(t, head); o.Err == nil {
						locktest.Unlock(t, o.Hold)
					} else {
						require.ErrorIs(t, o.Err, rlock.ErrNotAcquired)
					}
					e.requireNext(t, released, next)
				}
			}
			e.requireQuiet(t)
		},
	},
	{
		Name:  "the lock of a waiter that died after it got it goes to the next when its lease ends",
		Exact: true,
		Kept:  func(k Kind) bool { return !k.Shared },
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 3 * time.Second
			for _, p := range []*Party{e.Party(t), e.Party(t)} {
				hold := locktest.Acquire(t, k.Contender(p, "lock"), rlock.Watchdog)
				first := locktest.LockInBackground(t.Context(), k.New(p, "lock"), rlock.Lease(lease))
				e.settle()
				second := e.waiter(t.Context(), t, k.New(p, "lock"))
				locktest.Unlock(t, hold)
				dead := locktest.Result(t, first)
				require.NoError(t, dead.Err)
				next := locktest.Result(t, second)
				require.NoError(t, next.Err)
				require.False(t, next.At.Before(dead.Hold.Deadline()))
				require.LessOrEqual(t, next.At.Sub(dead.At), lease+time.Millisecond)
				locktest.Unlock(t, next.Hold)
			}
		},
	},
	{
		Name: "of many waiters that leave at once, nothing stays behind",
		Test: func(t *testing.T, e *Env, k Kind) {
			const waiters = 100
			lock, hold := e.held(t, k)
			ctx, leave := context.WithCancel(t.Context())
			var all []<-chan locktest.Outcome
			for range waiters {
				all = append(all, locktest.LockInBackground(ctx, lock, rlock.Watchdog))
			}
			e.settle()
			left := time.Now()
			leave()
			for _, w := range all {
				o := locktest.Result(t, w)
				require.ErrorIs(t, o.Err, context.Canceled)
				e.requireTook(t, 0, o.At.Sub(left))
			}
			require.True(t, hold.Valid())
			locktest.Unlock(t, hold)
			e.requireQuiet(t)
		},
	},
}
