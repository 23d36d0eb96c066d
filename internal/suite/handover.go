package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

func handsOver(k Kind) bool { return k.HandsOver }

// Hand-overs: how a lock gets from a release to a waiter, as its users see it.
var handover = []Promise{
	{
		Name:  "waiters of one process get a lock in the order of their arrival",
		Exact: true,
		Kept:  func(k Kind) bool { return ofOneClient(k) && !k.Shared && !k.ContendersShare },
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, mode := range handOvers {
				lock := k.New(e.Party(t, mode), "lock")
				hold := locktest.Acquire(t, lock, rlock.Watchdog)
				var waiters []<-chan locktest.Outcome
				for range 4 {
					waiters = append(waiters, e.waiter(t.Context(), t, lock))
				}
				for i, waiter := range waiters {
					released := time.Now()
					locktest.Unlock(t, hold)
					hold = e.acquiredSince(t, released, waiter)
					e.requireWaiting(t, waiters[i+1:]...)
				}
				locktest.Unlock(t, hold)
			}
		},
	},
	{
		Name: "no waiter of any process is passed over, whatever HandOver says",
		Test: func(t *testing.T, e *Env, k Kind) {
			for i, mode := range handOvers {
				var waiters []<-chan locktest.Outcome
				name := fmt.Sprint("lock", i) // readers that waited for another come first
				hold := locktest.Acquire(t, k.Contender(e.Party(t, mode), name), rlock.Watchdog)
				for range 3 {
					p := e.Party(t, mode)
					for range 3 {
						waiters = append(waiters, locktest.LockInBackground(t.Context(), k.New(p, name),
							rlock.Watchdog))
					}
				}
				e.requireWaiting(t, waiters...)
				locktest.Unlock(t, hold)
				var served sync.WaitGroup
				for _, waiter := range waiters {
					served.Go(func() {
						if o := <-waiter; assert.NoError(t, o.Err) {
							assert.NoError(t, o.Hold.Unlock())
						}
					})
				}
				served.Wait()
				e.RequireNothingLeft(t)
			}
		},
	},
	{
		Name: "a waiter that leaves as the lock is released passes it on",
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, elsewhere := range []bool{false, true} {
				by, p := e.Party(t), e.Party(t)
				next := p
				if elsewhere {
					next = e.Party(t)
				}
				for i := range 5 {
					name := fmt.Sprint("lock", elsewhere, i)
					hold := locktest.Acquire(t, k.Contender(by, name), rlock.Watchdog)
					ctx, leave := context.WithCancel(t.Context())
					leaver := e.waiter(ctx, t, k.New(p, name))
					stayer := e.waiter(t.Context(), t, k.New(next, name))
					go leave()
					locktest.Unlock(t, hold)
					if o := locktest.Result(t, leaver); o.Err == nil {
						locktest.Unlock(t, o.Hold)
					}
					locktest.Unlock(t, locktest.Acquired(t, stayer))
					e.RequireNothingLeft(t)
				}
			}
		},
	},
	{
		Name:  "a lock that is handed to a waiter that has just left is given back",
		Kept:  func(k Kind) bool { return ofOneClient(k) && !k.Shared },
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, elsewhere := range []bool{false, true} {
				for _, closes := range []bool{false, true} {
					p, wire := e.PartyOnWire(t, k)
					by, name := p, fmt.Sprint("lock", elsewhere, closes)
					if elsewhere {
						by = e.Party(t)
					}
					hold := locktest.Acquire(t, k.Contender(by, name), rlock.Lease(time.Hour))
					var before <-chan locktest.Outcome
					if !elsewhere {
						before = e.waiter(t.Context(), t, k.New(p, name))
					}
					ctx, leave := context.WithCancel(t.Context())
					leaver := locktest.LockInBackground(ctx, k.New(p, name), rlock.Lease(time.Hour))
					e.requireWaiting(t, leaver)
					if !elsewhere { // then Redis does not know the leaver
						locktest.Unlock(t, hold)
						hold = locktest.Acquired(t, before)
					}
					wire.Hold() // the reply, or the message to the waiter
					released, closed := make(chan error, 1), make(chan error, 1)
					go func() { released <- hold.Unlock() }()
					e.settle()
					if closes {
						go func() { closed <- p.Client.Close(context.Background()) }()
					} else {
						leave()
						close(closed)
					}
					require.Error(t, locktest.Result(t, leaver).Err)
					wire.Pass()
					require.NoError(t, locktest.Receive(t, released, "the release hangs"))
					require.NoError(t, locktest.Receive(t, closed, "Close hangs"))
					locktest.Within(t, time.Second, func() { e.RequireNothingLeft(t) })
					leave()
				}
			}
		},
	},
	{
		Name:  "processes that contend for long hold the lock about equally often",
		Kept:  func(k Kind) bool { return k.HandsOver && !k.Flat },
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const parties, rounds = 3, 200
			var shares [parties]atomic.Int32
			var total atomic.Int32
			var working sync.WaitGroup
			for i := range parties {
				lock := k.New(e.Party(t), "lock")
				for range 4 {
					working.Go(func() {
						for {
							hold, err := lock.Lock(t.Context(), rlock.Watchdog)
							if !assert.NoError(t, err) {
								return
							}
							if total.Add(1) <= rounds {
								shares[i].Add(1)
							}
							time.Sleep(time.Millisecond)
							assert.NoError(t, hold.Unlock())
							if total.Load() > rounds {
								return
							}
						}
					})
				}
			}
			working.Wait()
			for i := range parties {
				require.Greater(t, int(shares[i].Load()), rounds/parties/2)
			}
		},
	},
	{
		Name: "a lock that was handed over is never trusted for longer than Redis keeps it",
		Kept: ofOneClient,
		Test: func(t *testing.T, e *Env, k Kind) {
			for _, lease := range []rlock.Lease{rlock.Watchdog, rlock.Lease(20 * time.Second)} {
				for _, within := range []bool{true, false} {
					p, wire := e.PartyOnWire(t, k)
					by, name := p, fmt.Sprint(lease, within)
					if !within {
						by = e.Party(t)
					}
					hold := locktest.Acquire(t, k.Contender(by, name), rlock.Lease(time.Minute))
					waiter := locktest.LockInBackground(t.Context(), k.New(p, name), lease)
					e.requireWaiting(t, waiter)
					wire.Hold() // the reply to the release, or the message
					released := make(chan error, 1)
					go func() { released <- hold.Unlock() }()
					time.Sleep(300 * time.Millisecond)
					wire.Pass()
					require.NoError(t, locktest.Receive(t, released, "the release hangs"))
					next := locktest.Acquired(t, waiter)
					kept := infoOf(t, k.New(by, name).(*rlock.Lock)).TTL + time.Millisecond // rounded
					require.LessOrEqual(t, time.Until(next.Deadline()), kept)
					require.True(t, next.Valid())
					locktest.Unlock(t, next)
				}
			}
		},
	},
	{
		Name:  "a lock that is granted to a process that hangs goes on after a tenth of the lease",
		Kept:  handsOver,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			const lease = 20 * time.Second
			hung, wire := e.PartyOnWire(t, k, watchdogLease(lease))
			hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Lease(time.Minute))
			first := e.waiter(t.Context(), t, k.New(hung, "lock"))
			second := e.waiter(t.Context(), t, k.New(e.Party(t), "lock"))
			wire.Hold()
			released := time.Now()
			locktest.Unlock(t, hold)
			o := locktest.Result(t, second)
			require.NoError(t, o.Err)
			require.InDelta(t, lease/10, o.At.Sub(released), float64(lease/100))
			wire.Pass()
			e.requireWaiting(t, first) // it does not trust what it was granted
			locktest.Unlock(t, o.Hold)
			locktest.Unlock(t, locktest.Acquired(t, first))
		},
	},
	{
		Name: "a waiter whose lock is granted in a message that is lost with its connection finds it",
		Kept: handsOver,
		Test: func(t *testing.T, e *Env, k Kind) {
			p, wire := e.PartyOnWire(t, k)
			look := k.New(e.Party(t), "lock").(*rlock.Lock)
			hold := locktest.Acquire(t, look, rlock.Lease(time.Hour))
			waiter := e.waiter(t.Context(), t, k.New(p, "lock"))
			locktest.Eventually(t, func() bool { return len(e.known(t)) > 0 }, "it is unknown")
			wire.Hold()
			locktest.Unlock(t, hold)
			granted := infoOf(t, look)
			wire.Break()
			broken := time.Now()
			wire.Pass()
			o := locktest.Result(t, waiter)
			require.NoError(t, o.Err)
			require.Less(t, o.At.Sub(broken), e.atMost(time.Second)) // else it asks after 5 s
			require.Equal(t, granted.Owner, o.Hold.Owner(), "it is the same acquisition")
			require.Equal(t, granted.Token, o.Hold.Token())
			locktest.Unlock(t, o.Hold)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a waiter whose process is gone is passed over at once",
		Kept: handsOver,
		Test: func(t *testing.T, e *Env, k Kind) {
			gone, wire := e.PartyOnWire(t, k)
			hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Lease(time.Hour))
			locktest.LockInBackground(t.Context(), k.New(gone, "lock"), rlock.Lease(time.Hour))
			locktest.Eventually(t, func() bool { return len(e.known(t)) > 0 }, "it is unknown")
			wire.settle(t, e)
			wire.Cut()
			locktest.Eventually(t, func() bool {
				return !slices.ContainsFunc(channels(t, e.Servers[0]), func(name string) bool {
					return strings.Contains(name, gone.Client.ID())
				})
			}, "it still listens")
			waiter := e.waiter(t.Context(), t, k.New(e.Party(t), "lock"))
			released := time.Now()
			locktest.Unlock(t, hold)
			locktest.Unlock(t, e.acquiredSince(t, released, waiter))
		},
	},
	{
		Name:  "HandOver says whether locks go to waiters of other processes, of this one, or free",
		Kept:  handsOver,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			for i, mode := range handOvers {
				p, tr := e.traced(t, mode)
				lock := k.New(p, "lock")
				hold := locktest.Acquire(t, k.New(e.Party(t), "lock"), rlock.Lease(time.Hour))
				for _, how := range [][]rlock.How{
					{rlock.Granted, rlock.Free, rlock.Free},
					{rlock.HandedOver, rlock.HandedOver, rlock.Free},
				} {
					tr.Forget()
					waiter := e.waiter(t.Context(), t, lock)
					require.Equal(t, i == 0, len(e.known(t)) > 0, "whether Redis knows the waiter")
					released := time.Now()
					locktest.Unlock(t, hold)
					hold = e.acquiredSince(t, released, waiter)
					require.Equal(t, how[i], told[rlock.AcquireEnd](t, tr, lock).How)
				}
				locktest.Unlock(t, hold)
			}
		},
	},
	{
		Name:  "a waiter that is granted the lock asks once if it has not asked for long",
		Kept:  handsOver,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			warm(t, e.Party(t, anonymous), k)
			for _, of := range []struct {
				lease  rlock.Lease
				waited time.Duration
				asks   int
			}{
				// It is half of the short lease with the watchdog, and else a tenth of the lease.
				{rlock.Watchdog, 2400 * time.Millisecond, 0},
				{rlock.Watchdog, 2600 * time.Millisecond, 1},
				{rlock.Lease(10 * time.Second), 900 * time.Millisecond, 0},
				{rlock.Lease(10 * time.Second), 1100 * time.Millisecond, 1},
			} {
				hold := locktest.Acquire(t, k.New(e.Party(t, anonymous), "lock"), rlock.Lease(time.Minute))
				waiter := locktest.LockInBackground(t.Context(), k.New(e.Party(t, anonymous), "lock"),
					of.lease)
				time.Sleep(of.waited)
				e.settle()
				before := e.scripts(t)
				locktest.Unlock(t, hold)
				next := locktest.Acquired(t, waiter)
				require.Equal(t, 1+of.asks, e.scripts(t)-before, of)
				locktest.Unlock(t, next)
			}
		},
	},
}

// handOvers are the options of clients that hand locks over in different ways.
var handOvers = []func(*rlock.Options){
	func(o *rlock.Options) { o.HandOver = rlock.HandOverAnywhere },
	func(o *rlock.Options) { o.HandOver = rlock.HandOverLocal },
	func(o *rlock.Options) { o.HandOver = rlock.HandOverNone },
}
