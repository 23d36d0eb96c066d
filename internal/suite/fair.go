package suite

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Fair locks go to waiters in the order of their arrival, whichever client they use. A waiter that
// gives up leaves the queue at once.
var fairness = []Promise{
	{
		Name: "waiters of all clients get a fair lock in the order of their arrival",
		Kept: isFair,
		Test: func(t *testing.T, e *Env, k Kind) {
			a, b := k.New(e.Party(t), "job"), k.New(e.Party(t), "job")
			hold := locktest.Acquire(t, a, rlock.Watchdog)
			waiters := e.inTurn(t, a, b, b, a, b, a)
			for i, w := range waiters {
				released := time.Now()
				locktest.Unlock(t, hold)
				hold = e.acquiredSince(t, released, w.done)
				for _, later := range waiters[i+1:] {
					e.requireWaiting(t, later.done)
				}
			}
			locktest.Unlock(t, hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "whoever releases a fair lock and wants it again comes last",
		Kept: isFair,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "job")
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			first := e.inTurn(t, lock)[0]
			locktest.Unlock(t, hold)
			again := locktest.LockInBackground(t.Context(), lock, rlock.Watchdog)
			hold = locktest.Acquired(t, first.done)
			e.requireWaiting(t, again)
			locktest.Unlock(t, hold)
			locktest.Unlock(t, locktest.Acquired(t, again))
		},
	},
	{
		Name: "an attempt without wait steps back for the queue, and does not join it",
		Kept: isFair,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "job")
			// As a client of Redisson does.
			e.doAll(t, "RPUSH", "redisson_lock_queue:{job}", "java:1")
			e.doAll(t, "ZADD", "redisson_lock_timeout:{job}", "99999999999999", "java:1")
			_, err := lock.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			held := heldError(t, err)
			require.Equal(t, "java:1", held.Owner)
			require.True(t, held.Next, "it is the next, not the holder")
			info := infoOf(t, lock.(*rlock.Lock))
			require.False(t, info.Locked)
			require.Equal(t, []string{"java:1"}, info.Queue)
		},
	},
	{
		Name: "a waiter that gives up leaves the queue at once, wherever it was",
		Kept: isFair,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "job")
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			waiters := e.inTurn(t, lock, lock, lock)
			queue := infoOf(t, lock.(*rlock.Lock)).Queue
			for _, c := range []struct {
				leaves int
				rest   []string
			}{{1, []string{queue[0], queue[2]}}, {0, []string{queue[2]}}} {
				waiters[c.leaves].leave()
				require.ErrorIs(t, locktest.Result(t, waiters[c.leaves].done).Err, context.Canceled)
				e.requireQueue(t, lock, c.rest)
			}
			_, err := lock.TryLock(t.Context(), 2*time.Second, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			e.requireQueue(t, lock, queue[2:])
			released := time.Now()
			locktest.Unlock(t, hold)
			locktest.Unlock(t, e.acquiredSince(t, released, waiters[2].done))
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a head that leaves as the lock is released passes its turn on",
		Kept: isFair,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "job")
			for range 10 {
				hold := locktest.Acquire(t, lock, rlock.Watchdog)
				waiters := e.inTurn(t, lock, lock)
				released := time.Now()
				go waiters[0].leave()
				locktest.Unlock(t, hold)
				if o := locktest.Result(t, waiters[0].done); o.Err == nil { // it had the lock first
					released = time.Now()
					locktest.Unlock(t, o.Hold)
				}
				locktest.Unlock(t, e.acquiredSince(t, released, waiters[1].done))
				e.RequireNothingLeft(t)
			}
		},
	},
	{
		Name:  "Close takes the waiters of its client out of the queue, and no others",
		Kept:  isFair,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			closing := e.Party(t)
			leaving, staying := k.New(closing, "job"), k.New(e.Party(t), "job")
			hold := locktest.Acquire(t, staying, rlock.Watchdog)
			waiters := e.inTurn(t, leaving, leaving, staying, leaving)
			queue := infoOf(t, staying.(*rlock.Lock)).Queue
			locktest.CloseClient(t, closing.Client)
			for _, i := range []int{0, 1, 3} {
				require.ErrorIs(t, locktest.Result(t, waiters[i].done).Err, rlock.ErrClosed)
			}
			e.requireQueue(t, staying, queue[2:3])
			released := time.Now()
			locktest.Unlock(t, hold)
			locktest.Unlock(t, e.acquiredSince(t, released, waiters[2].done))
		},
	},
	{
		Name:  "a waiter that leaves while the server is down leaves the queue once it is back",
		Kept:  isFair,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Lease(time.Hour))
			ctx, leave := context.WithCancel(t.Context())
			p := e.Party(t, func(o *rlock.Options) { o.FairWindow = math.MaxInt64 })
			waiter := try(ctx, k.New(p, "lock"), rlock.Forever, rlock.Lease(time.Second))
			e.requireWaiting(t, waiter)
			require.NotEmpty(t, e.known(t))
			e.Servers[0].Disconnect(t)
			leave()
			require.ErrorIs(t, locktest.Result(t, waiter).Err, context.Canceled)
			time.Sleep(10 * time.Second)
			e.Servers[0].Connect(t)
			locktest.Eventually(t, func() bool { return len(e.known(t)) == 0 }, "it is in the queue")
		},
	},
	{
		Name: "ForceUnlock of a fair lock gives it to the head",
		Kept: isFair,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			lock := k.New(p, "job")
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			waiters := e.inTurn(t, lock, lock)
			released := time.Now()
			forceUnlock(t, p, k, "job")
			next := e.acquiredSince(t, released, waiters[0].done)
			require.ErrorIs(t, hold.Err(), rlock.ErrForced)
			e.requireWaiting(t, waiters[1].done)
			locktest.Unlock(t, next)
			locktest.Unlock(t, locktest.Acquired(t, waiters[1].done))
		},
	},
	{
		Name:  "a waiter of another process that died is skipped after half a second as the head",
		Kept:  isFair,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "job")
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			e.doAll(t, "RPUSH", "redisson_lock_queue:{job}", "dead:1")
			e.doAll(t, "ZADD", "redisson_lock_timeout:{job}", "99999999999999", "dead:1")
			waiter := e.inTurn(t, lock)[0]
			e.requireQueue(t, lock, append([]string{"dead:1"}, infoOf(t, lock.(*rlock.Lock)).Queue[1]))
			released := time.Now()
			locktest.Unlock(t, hold)
			o := locktest.Result(t, waiter.done)
			require.NoError(t, o.Err)
			require.InDelta(t, 500*time.Millisecond, o.At.Sub(released), float64(20*time.Millisecond))
			locktest.Unlock(t, o.Hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "Redis knows how long a caller waits, and does not offer it the lock afterwards",
		Kept:  isFair,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const wait = 3 * time.Second
			for _, limit := range []time.Duration{wait, rlock.Forever} { // or its context ends
				p, wire := e.PartyOnWire(t, k)
				hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Lease(time.Hour))
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				gone := try(ctx, k.New(p, "lock"), limit, rlock.Lease(time.Hour))
				e.requireWaiting(t, gone)
				waiter := e.waiter(t.Context(), t, k.New(e.Party(t), "lock"))
				wire.Stop() // it cannot say that it leaves
				require.Error(t, locktest.Result(t, gone).Err)
				released := time.Now()
				locktest.Unlock(t, hold)
				locktest.Unlock(t, e.acquiredSince(t, released, waiter))
				wire.Pass()
				cancel()
			}
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "a process that hangs delays the queue by ten seconds, and loses only its place",
		Kept:  isFair,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Lease(time.Hour))
			hung := e.waiter(t.Context(), t, k.New(p, "lock"))
			waiter := e.waiter(t.Context(), t, k.New(e.Party(t), "lock"))
			wire.Stop()
			released := time.Now()
			locktest.Unlock(t, hold)
			time.Sleep(9 * time.Second)
			e.requireWaiting(t, waiter)
			o := locktest.Result(t, waiter)
			require.NoError(t, o.Err)
			require.InDelta(t, 10*time.Second, o.At.Sub(released), float64(20*time.Millisecond))
			wire.Pass()
			e.requireWaiting(t, hung)
			released = time.Now()
			locktest.Unlock(t, o.Hold)
			locktest.Unlock(t, e.acquiredSince(t, released, hung))
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "the lease of a holder that died ends the wait of the head, and of the next after it",
		Kept:  isFair,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "job")
			locktest.Acquire(t, k.New(e.Party(t), "job"), rlock.Lease(5*time.Second))
			began := time.Now()
			waiters := e.inTurn(t, lock, lock)
			next := locktest.Acquired(t, waiters[0].done)
			require.InDelta(t, 5*time.Second, time.Since(began), float64(100*time.Millisecond))
			e.requireWaiting(t, waiters[1].done)
			released := time.Now()
			locktest.Unlock(t, next)
			locktest.Unlock(t, e.acquiredSince(t, released, waiters[1].done))
		},
	},
	{
		Name:  "waiters of a fair lock ask at most once in five seconds after they came",
		Kept:  isFair,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const waiters = 20
			lock := k.New(e.Party(t, anonymous), "job")
			e.plant(t, k, "job", "java:1")
			ctx, cancel := context.WithCancel(t.Context())
			var done []<-chan locktest.Outcome
			for range waiters {
				done = append(done, e.waiter(ctx, t, lock))
			}
			before := e.scripts(t)
			time.Sleep(time.Minute)
			require.LessOrEqual(t, e.scripts(t)-before, 13*waiters)
			cancel()
			for _, d := range done {
				require.ErrorIs(t, locktest.Result(t, d).Err, context.Canceled)
			}
			e.requireQueue(t, lock, nil)
		},
	},
	{
		Name:  "a server that forgets the queue has it again after five seconds",
		Kept:  isFair,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "job")
			locktest.Acquire(t, lock, rlock.Watchdog)
			waiters := e.inTurn(t, lock, lock, lock)
			e.doAll(t, "FLUSHALL")
			forgotten := time.Now()
			served := make(chan error, len(waiters))
			for _, w := range waiters {
				go func() {
					o := <-w.done
					if o.Err == nil {
						o.Err = o.Hold.Unlock()
					}
					served <- o.Err
				}()
			}
			for range waiters {
				require.NoError(t, locktest.Receive(t, served, "not served"))
			}
			require.LessOrEqual(t, time.Since(forgotten), 5*time.Second)
			e.RequireNothingLeft(t)
		},
	},
}

func isFair(k Kind) bool { return k.Fair }

// queued is a goroutine that waits in the queue of a fair lock.
type queued struct {
	done  <-chan locktest.Outcome
	leave context.CancelFunc
}

// inTurn lets goroutines wait for a fair lock, each behind the one before.
func (e *Env) inTurn(t *testing.T, locks ...rlock.Locker) (waiters []queued) {
	t.Helper()
	before := len(infoOf(t, locks[0].(*rlock.Lock)).Queue)
	for i, lock := range locks {
		ctx, leave := context.WithCancel(t.Context())
		t.Cleanup(leave)
		waiters = append(waiters, queued{e.waiter(ctx, t, lock), leave})
		locktest.Eventually(t, func() bool {
			return len(infoOf(t, lock.(*rlock.Lock)).Queue) == before+i+1
		}, "it is not queued")
	}
	return waiters
}

// requireQueue requires that a fair lock soon has this queue.
func (e *Env) requireQueue(t *testing.T, lock rlock.Locker, want []string) {
	t.Helper()
	e.settle()
	queue := func() []string { return infoOf(t, lock.(*rlock.Lock)).Queue }
	if !e.Virtual {
		locktest.Eventually(t, func() bool { return slices.Equal(want, queue()) }, "the queue")
	}
	require.Equal(t, want, queue())
}
