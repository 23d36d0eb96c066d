package suite

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

var takesTurns = only("plain", "nonreentrant", "write")

// writes keeps only the write lock.
var writes = only("write")

func noLocalTurns(o *rlock.Options) { o.NoLocalTurns = true }

// Turns: a process passes a lock on to its next waiter without asking Redis.
var turns = []Promise{
	{
		Name:  "a process passes a lock on 15 times without a command",
		Kept:  takesTurns,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t, anonymous), "lock")
			hold, waiters := e.hot(t, lock, 40)
			before := e.scripts(t)
			for i, waiter := range waiters[:32] {
				owner := hold.Owner()
				locktest.Unlock(t, hold)
				hold = locktest.Acquired(t, waiter)
				asks := (i+2)%16 == 0 // hot has handed the lock over twice
				if asks {
					before += throughRedis(k)
				}
				require.Equal(t, !asks, owner == hold.Owner(), "hand-over %d", i)
				require.Equal(t, before, e.scripts(t), "hand-over %d", i)
				info := infoOf(t, lock.(*rlock.Lock))
				require.Equal(t, hold.Owner(), info.Owner)
				require.Equal(t, 1, info.Count)
				before = e.scripts(t)
			}
			e.release(t, hold, waiters[32:])
		},
	},
	{
		Name:  "a lock that Redis gave to a process 100 ms ago is not passed on without a command",
		Kept:  takesTurns,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			hold, waiters := e.hot(t, k.New(e.Party(t), "lock"), 3)
			for i, commands := range []int{0, throughRedis(k), 0} {
				before := e.scripts(t)
				time.Sleep(60 * time.Millisecond)
				locktest.Unlock(t, hold)
				hold = locktest.Acquired(t, waiters[i])
				require.Equal(t, before+commands, e.scripts(t), "hand-over %d", i)
			}
			e.release(t, hold, nil)
		},
	},
	{
		Name:  "each reason to ask Redis at a release is heeded",
		Kept:  takesTurns,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for name, c := range map[string]struct {
				options  []func(*rlock.Options)
				waiter   rlock.Lease
				before   func(t *testing.T, p *Party, hold *rlock.Hold)
				commands int // of the release; 1 unless it is a turn
			}{
				"none":                   {},
				"a turn is not wanted":   {options: []func(*rlock.Options){noLocalTurns}, commands: 1},
				"hand-overs are off":     {options: handOvers[2:], commands: 2}, // and the next asks
				"the waiter has a lease": {waiter: rlock.Lease(time.Minute), commands: 1},
				"the lease is extended":  {before: extends(time.Hour), commands: 1},
				"it is extended by less": {before: extends(time.Second)},
				"the holder nested":      {before: nestsOnce(k), commands: 1},
				"the writer read":        {before: reads, commands: 1},
			} {
				if k.Flat && name == "the holder nested" || !writes(k) && name == "the writer read" {
					continue
				}
				p := e.Party(t, append(c.options, anonymous)...)
				lock := k.New(p, "lock")
				hold, between := e.hot(t, lock, 1)
				waiter := locktest.LockInBackground(t.Context(), lock, cmp.Or(c.waiter, rlock.Watchdog))
				e.settle()
				locktest.Unlock(t, hold)
				hold = locktest.Acquired(t, between[0])
				if c.before != nil {
					c.before(t, p, hold)
				}
				e.settle()
				before := e.scripts(t)
				locktest.Unlock(t, hold)
				next := locktest.Acquired(t, waiter)
				require.Equal(t, c.commands, e.scripts(t)-before, name)
				e.release(t, next, nil)
			}
		},
	},
	{
		Name:  "a holder that Redis may know by a registration does not pass its name on",
		Exact: true,
		Kept:  only("plain", "nonreentrant"), // a write lock has no registrations
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			holders := []*Party{p} // the head is handed the lock, or asks for it
			for _, mode := range handOvers {
				holders = append(holders, e.Party(t, mode))
			}
			for i, holder := range holders {
				name := fmt.Sprint("lock", i)
				first := locktest.Acquire(t, k.New(holder, name), rlock.Watchdog)
				head := e.waiter(t.Context(), t, k.New(p, name))
				second := e.waiter(t.Context(), t, k.New(p, name))
				locktest.Eventually(t, func() bool { return len(e.known(t)) > 0 }, "it is unknown")
				locktest.Unlock(t, first)
				hold := locktest.Acquired(t, head)
				owner := hold.Owner()
				locktest.Unlock(t, hold)
				hold = locktest.Acquired(t, second)
				require.NotEqual(t, owner, hold.Owner())
				e.release(t, hold, nil)
			}
		},
	},
	{
		Name:  "a writer that still reads does not pass the lock on",
		Exact: true,
		Kept:  writes,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold, waiters := e.hot(t, k.New(p, "lock"), 1)
			reading := locktest.AcquireWith(hold.Context(), t, read(p.Client, "lock"), rlock.Watchdog)
			locktest.Unlock(t, hold)
			e.settle()
			require.Empty(t, waiters[0], "both have the lock")
			locktest.Unlock(t, reading)
			e.release(t, locktest.Acquired(t, waiters[0]), nil)
		},
	},
	{
		Name:  "the watchdog renews a lock that was passed on",
		Kept:  takesTurns,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock := k.New(e.Party(t), "lock")
			hold, waiters := e.hot(t, lock, 1)
			owner := hold.Owner()
			locktest.Unlock(t, hold)
			hold = locktest.Acquired(t, waiters[0])
			require.Equal(t, owner, hold.Owner())
			for range 20 {
				time.Sleep(10 * time.Second)
				require.True(t, hold.Valid())
				require.LessOrEqual(t, time.Until(hold.Deadline()),
					infoOf(t, lock.(*rlock.Lock)).TTL+time.Millisecond)
			}
			e.release(t, hold, nil)
		},
	},
	{
		Name:  "a process that passes a lock on notices within 100 ms and a hold that Redis lost it",
		Kept:  takesTurns,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const section = 20 * time.Millisecond
			hold, waiters := e.hot(t, k.New(e.Party(t), "lock"), 10)
			e.doAll(t, "DEL", "lock")
			deleted := time.Now()
			for _, waiter := range waiters {
				time.Sleep(section)
				err := hold.Unlock()
				if err != nil {
					require.ErrorIs(t, err, rlock.ErrLost)
					require.LessOrEqual(t, time.Since(deleted), 100*time.Millisecond+section)
					hold = locktest.Acquired(t, waiter) // by asking
					e.release(t, hold, waiters[5:])
					return
				}
				hold = locktest.Acquired(t, waiter)
			}
			t.Fatal("nobody noticed")
		},
	},
}

// hot returns a hold of a lock that Redis has just given to a waiter of this process, and n waiters
// that Redis does not know.
func (e *Env) hot(t *testing.T, lock rlock.Locker, n int) (*rlock.Hold, []<-chan locktest.Outcome) {
	t.Helper()
	first := locktest.Acquire(t, lock, rlock.Watchdog)
	head := e.waiter(t.Context(), t, lock) // Redis knows it, so it does not pass its name on
	second := e.waiter(t.Context(), t, lock)
	rest := e.waiters(t.Context(), t, n, lock)
	time.Sleep(time.Second) // until the head has asked again after it began to listen
	locktest.Unlock(t, first)
	locktest.Unlock(t, locktest.Acquired(t, head))
	return locktest.Acquired(t, second), rest
}

// release releases a hold, and those of all waiters.
func (e *Env) release(t *testing.T, hold *rlock.Hold, waiters []<-chan locktest.Outcome) {
	t.Helper()
	locktest.Unlock(t, hold)
	for _, waiter := range waiters {
		locktest.Unlock(t, locktest.Acquired(t, waiter))
	}
	e.RequireNothingLeft(t)
}

// throughRedis returns how many scripts a hand-over through Redis takes at the end of a run. Redis
// grants a plain lock. The release of a write lock only announces it, and the next waiter asks.
func throughRedis(k Kind) int {
	if writes(k) {
		return 2
	}
	return 1
}

// reads has the owner of a write lock read for a moment.
func reads(t *testing.T, p *Party, hold *rlock.Hold) {
	locktest.Unlock(t,
		locktest.AcquireWith(hold.Context(), t, read(p.Client, hold.Name()), rlock.Watchdog))
}

func extends(lease time.Duration) func(*testing.T, *Party, *rlock.Hold) {
	return func(t *testing.T, _ *Party, hold *rlock.Hold) {
		require.NoError(t, hold.Extend(t.Context(), rlock.Lease(lease)))
	}
}

func nestsOnce(k Kind) func(*testing.T, *Party, *rlock.Hold) {
	return func(t *testing.T, p *Party, hold *rlock.Hold) {
		locktest.Unlock(t, locktest.AcquireWith(hold.Context(), t, k.New(p, hold.Name()), rlock.Watchdog))
	}
}
