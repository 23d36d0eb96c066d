package suite

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// longest is the longest time.
const longest = math.MaxInt64

// Waiting: how long attempts wait, and what ends the wait for a lock that others hold.
var waiting = []Promise{
	{
		Name: "an attempt without wait fails at once and is queued nowhere",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, hold := e.held(t, k)
			before := e.keys(t)
			start := time.Now()
			_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			e.requireTook(t, 0, time.Since(start))
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			requireHeldBy(t, hold, err)
			e.settle()
			require.ElementsMatch(t, before, e.keys(t))
			locktest.Unlock(t, hold)
		},
	},
	{
		Name: "an attempt waits exactly as long as it says",
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Watchdog)
			lock := k.New(e.Party(t), "lock")
			waits := []time.Duration{10 * time.Millisecond, 350 * time.Millisecond, time.Second}
			if e.Virtual {
				waits = append(waits, 1, time.Millisecond, 12*time.Second)
			}
			for _, wait := range waits {
				start := time.Now()
				_, err := lock.TryLock(t.Context(), wait, rlock.Watchdog)
				e.requireTook(t, max(wait, 10*time.Millisecond), time.Since(start))
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				if !e.Virtual {
					continue // the machine may be too busy to reply in so short a time
				}
				require.ErrorIs(t, err, rlock.ErrNotAcquired, "%v", wait)
				requireHeldBy(t, hold, err)
			}
			locktest.Unlock(t, hold)
			e.requireQuiet(t)
		},
	},
	{
		Name: "a lock that is free is acquired at once, however long the wait and the lease",
		// The shortest wait leaves 10 ms for the reply, which a busy machine may not meet.
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			for _, wait := range []time.Duration{
				rlock.NoWait, 1, time.Second, longest - 1, rlock.Forever,
			} {
				for _, lease := range []rlock.Lease{rlock.Watchdog, rlock.Lease(time.Minute), longest - 1} {
					start := time.Now()
					hold, err := lock.TryLock(t.Context(), wait, lease)
					require.NoError(t, err, "wait %v, lease %v", wait, lease)
					e.requireTook(t, 0, time.Since(start))
					require.True(t, hold.Valid())
					locktest.Unlock(t, hold)
				}
			}
			e.requireQuiet(t)
		},
	},
	{
		Name:  "all times of the options may be as long as a Duration can be",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for i, d := range []time.Duration{longest / 2, longest} {
				for j, set := range []func(*rlock.Options){
					func(o *rlock.Options) { o.WatchdogLease = d },
					func(o *rlock.Options) { o.CommandTimeout = d },
					func(o *rlock.Options) { o.FairWindow = d },
					func(o *rlock.Options) { o.MaxHold = d },
				} {
					p, name := e.Party(t, set), fmt.Sprint("lock ", i, j)
					hold := locktest.Acquire(t, k.Contender(p, name), rlock.Watchdog)
					start := time.Now()
					_, err := k.New(p, name).TryLock(t.Context(), time.Second, rlock.Watchdog)
					require.ErrorIs(t, err, rlock.ErrNotAcquired)
					require.Equal(t, time.Second, time.Since(start))
					require.NoError(t, hold.Extend(t.Context(), rlock.Lease(time.Hour)))
					locktest.Unlock(t, hold)
				}
			}
		},
	},
	{
		Name: "a release wakes a waiter of the same process and of another",
		Test: func(t *testing.T, e *Env, k Kind) {
			here, elsewhere := e.Party(t), e.Party(t)
			for range 2 {
				for _, waiting := range []*Party{here, elsewhere} {
					holder := locktest.LockInBackground(t.Context(), k.Contender(here, "lock"),
						rlock.Watchdog)
					hold := locktest.Acquired(t, holder)
					waiter := e.waiter(t.Context(), t, k.New(waiting, "lock"))
					e.requireWaiting(t, waiter)
					released := time.Now()
					locktest.Unlock(t, hold)
					e.requireNext(t, released, waiter)
				}
			}
			e.requireQuiet(t)
		},
	},
	{
		Name: "a release by another library wakes a waiter",
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Lease(time.Minute))
			e.everywhere(t, k, "lock")
			hold.Leave()
			waiter := e.waiter(t.Context(), t, k.New(e.Party(t), "lock"))
			released := time.Now()
			for _, s := range e.Servers {
				s.Do(t, append([]string{"DEL"}, s.Keys(t)...)...)
			}
			for _, s := range e.Servers {
				for _, channel := range channels(t, s) {
					message := "0" // as Redisson announces a release
					if k.Name == "read" {
						message = "1" // and that of a writer
					}
					s.Do(t, "PUBLISH", channel, message)
				}
			}
			e.requireNext(t, released, waiter)
		},
	},
	{
		Name:  "waiters send nothing while they wait",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			locktest.Acquire(t, k.Contender(e.Party(t, anonymous), "lock"), rlock.Lease(time.Minute))
			e.everywhere(t, k, "lock")
			for range 2 {
				e.waiters(t.Context(), t, 3, k.New(e.Party(t, anonymous), "lock"))
			}
			time.Sleep(time.Second) // until they have asked again after they began to listen
			before := e.scripts(t)
			time.Sleep(time.Second)
			require.Equal(t, before, e.scripts(t))
		},
	},
	{
		Name:  "however many wait, and for how long, one of a process asks each five seconds",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const waiters = 5
			hold := locktest.Acquire(t, k.Contender(e.Party(t, anonymous), "lock"), rlock.Lease(time.Hour))
			e.everywhere(t, k, "lock")
			ctx, cancel := context.WithCancel(t.Context())
			all := e.waiters(ctx, t, waiters, k.New(e.Party(t, anonymous), "lock"))
			before := e.scripts(t)
			const length = 2 * time.Minute
			time.Sleep(length)
			// A round of a RedLock is a request to each master.
			want := k.Masters * int(length/(5*time.Second))
			if !queuesHere(k) {
				want *= waiters
			}
			require.InDelta(t, want, e.scripts(t)-before, float64(want)/20)
			cancel()
			for _, w := range all {
				require.ErrorIs(t, locktest.Result(t, w).Err, rlock.ErrNotAcquired)
			}
			locktest.Unlock(t, hold)
			e.requireQuiet(t)
		},
	},
	{
		Name:  "the lock of a holder that died goes to a waiter when its lease ends",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 7 * time.Second
			start := time.Now()
			hold := locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Lease(lease))
			next := locktest.Result(t, e.waiter(t.Context(), t, k.New(e.Party(t), "lock")))
			require.NoError(t, next.Err)
			require.False(t, next.At.Before(hold.Deadline()), "two owners trust the lock at once")
			require.LessOrEqual(t, next.At.Sub(start), lease+time.Millisecond)
			require.ErrorIs(t, hold.Err(), rlock.ErrLost)
			locktest.Unlock(t, next.Hold)
			e.requireQuiet(t)
		},
	},
	{
		Name:  "a lock that never expires is waited for, and stays",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const wait = 5 * time.Minute
			hold := locktest.Acquire(t, k.Contender(e.Party(t, anonymous), "lock"), rlock.Lease(time.Minute))
			owner := hold.Owner()
			e.everywhere(t, k, "lock")
			hold.Leave()
			for _, s := range e.Servers {
				for _, key := range s.Keys(t) {
					s.Do(t, "PERSIST", key)
				}
			}
			lock, before, start := k.New(e.Party(t, anonymous), "lock"), e.scripts(t), time.Now()
			_, err := lock.TryLock(t.Context(), wait, rlock.Watchdog)
			require.Equal(t, wait, time.Since(start))
			var held *rlock.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, owner, held.Owner)
			require.Equal(t, rlock.NoExpiry, held.TTL)
			asked := (e.scripts(t) - before) / k.Masters
			require.InDelta(t, int(wait/(5*time.Second)), asked, 8, "it asks each five seconds")
		},
	},
	{
		Name:  "with Forever, an attempt waits until the lock is free",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			hold := locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Watchdog)
			waiter := try(t.Context(), k.New(e.Party(t), "lock"), rlock.Forever, rlock.Watchdog)
			time.Sleep(2 * time.Minute)
			e.requireWaiting(t, waiter)
			released := time.Now()
			locktest.Unlock(t, hold)
			e.requireNext(t, released, waiter)
		},
	},
	{
		Name:  "when a wait ends, the error names the present holder and the rest of its lease",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = time.Minute
			p, waits := e.Party(t), []time.Duration{time.Second, 8 * time.Second, 3 * time.Second}
			begin := func() (waiters []<-chan locktest.Outcome) {
				for _, wait := range waits {
					waiters = append(waiters, try(t.Context(), k.New(p, "lock"), wait, rlock.Lease(lease)))
					e.settle()
				}
				return waiters
			}
			requireNamed := func(hold *rlock.Hold, leaseEnds time.Time, w []<-chan locktest.Outcome) {
				t.Helper()
				for _, done := range w {
					o := locktest.Result(t, done)
					held := requireHeldBy(t, hold, o.Err)
					if k.Masters == 1 {
						require.Equal(t, leaseEnds.Sub(o.At), held.TTL)
					}
				}
			}
			start := time.Now()
			first := locktest.Acquire(t, k.Contender(p, "lock"), rlock.Lease(lease))
			requireNamed(first, start.Add(lease), begin())
			if !queuesHere(k) || k.Shared || k.ContendersShare {
				locktest.Unlock(t, first)
				return // the next holder does not come from the queue of these waiters
			}
			waiter := locktest.LockInBackground(t.Context(), k.Contender(p, "lock"), rlock.Lease(lease))
			e.settle()
			behind := begin()
			locktest.Unlock(t, first)
			second := locktest.Result(t, waiter)
			require.NoError(t, second.Err)
			requireNamed(second.Hold, second.At.Add(lease), behind)
			locktest.Unlock(t, second.Hold)
			e.requireQuiet(t)
		},
	},
	{
		Name:  "when a wait ends on a server that hangs, the error does not say who holds the lock",
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const wait = 3 * time.Second
			locktest.Acquire(t, k.Contender(e.Party(t), "lock"), rlock.Lease(time.Second))
			p, start := e.Party(t), time.Now()
			waiters := []<-chan locktest.Outcome{
				try(t.Context(), k.New(p, "lock"), wait, rlock.Watchdog)}
			e.settle()
			if queuesHere(k) {
				waiters = append(waiters, try(t.Context(), k.New(p, "lock"), wait, rlock.Watchdog))
				e.settle()
			}
			e.pause(t)
			for _, waiter := range waiters {
				o := locktest.Result(t, waiter)
				require.Equal(t, wait, o.At.Sub(start))
				require.Error(t, o.Err)
				require.NotErrorIs(t, o.Err, rlock.ErrNotAcquired)
			}
			e.resume(t)
			e.requireQuiet(t)
		},
	},
}
