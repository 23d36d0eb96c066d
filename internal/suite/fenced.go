package suite

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// Fenced locks number their acquisitions, so that a resource can refuse the writes of earlier ones.
var fencing = []Promise{
	{
		Name: "tokens increase whatever ended the hold before, and an ended hold keeps its token",
		Kept: isFenced,
		Test: func(t *testing.T, e *Env, k Kind) {
			parties, last := []*Party{e.Party(t), e.Party(t)}, int64(0)
			for i, end := range []func(h *rlock.Hold){
				func(h *rlock.Hold) { locktest.Unlock(t, h) },
				func(*rlock.Hold) { forceUnlock(t, parties[1], k, "order") },
				func(*rlock.Hold) { e.doAll(t, "PEXPIRE", "order", "1") }, // the lease ends
				func(*rlock.Hold) { e.doAll(t, "DEL", "order") },
				func(h *rlock.Hold) { h.Leave(); e.doAll(t, "PEXPIRE", "order", "1") },
				func(h *rlock.Hold) {
					locktest.CloseClient(t, parties[1].Client)
					parties[1] = e.Party(t)
					e.doAll(t, "PEXPIRE", "order", "1")
				},
				func(h *rlock.Hold) { locktest.Unlock(t, h) },
			} {
				hold, err := k.New(parties[i%2], "order").
					TryLock(t.Context(), 10*time.Second, rlock.Lease(time.Minute))
				require.NoError(t, err)
				require.Equal(t, last+1, hold.Token(), "after end %d", i)
				last = hold.Token()
				end(hold)
				require.Equal(t, last, hold.Token())
			}
		},
	},
	{
		Name: "tokens are the order in which goroutines of three processes hold the lock",
		Kept: isFenced,
		Test: func(t *testing.T, e *Env, k Kind) {
			var last atomic.Int64
			var working sync.WaitGroup
			for range 3 {
				lock := k.New(e.Party(t), "order")
				for range 4 {
					working.Go(func() {
						for range 5 {
							hold, err := lock.Lock(t.Context(), rlock.Watchdog)
							if !assert.NoError(t, err) {
								return
							}
							assert.Equal(t, last.Add(1), hold.Token())
							assert.NoError(t, hold.Unlock())
						}
					})
				}
			}
			working.Wait()
		},
	},
	{
		Name: "all levels of an acquisition have its token, and Info shows the last one",
		Kept: isFenced,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			lock := k.New(p, "order").(*rlock.Lock)
			require.Zero(t, infoOf(t, lock).Token)
			locktest.Unlock(t, locktest.Acquire(t, lock, rlock.Watchdog))
			outer := locktest.Acquire(t, lock, rlock.Watchdog)
			owner := context.WithoutCancel(outer.Context())
			inner := locktest.AcquireWith(owner, t, lock, rlock.Watchdog)
			locktest.Unlock(t, outer)                         // out of order
			e.doAll(t, "INCR", "redisson_lock_token:{order}") // as Redisson does for each level
			again := locktest.AcquireWith(owner, t, lock, rlock.Watchdog)
			require.Equal(t, []int64{2, 2, 2}, []int64{outer.Token(), inner.Token(), again.Token()})
			require.EqualValues(t, 3, infoOf(t, lock).Token)
			locktest.Unlock(t, inner)
			locktest.Unlock(t, again)
			require.EqualValues(t, 4, locktest.Acquire(t, lock, rlock.Watchdog).Token())
		},
	},
	{
		Name:  "an acquisition whose caller left before the reply is undone, and its token not reused",
		Kept:  isFenced,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, server := k.New(e.Party(t), "order"), e.Servers[0].(inProcess)
			locktest.Unlock(t, locktest.Acquire(t, lock, rlock.Watchdog))
			server.SetDelay(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := lock.Lock(ctx, rlock.Watchdog)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			server.SetDelay(0)
			hold, err := lock.TryLock(t.Context(), time.Minute, rlock.Watchdog)
			require.NoError(t, err)
			require.EqualValues(t, 3, hold.Token())
		},
	},
	{
		Name:  "a refused attempt takes no token",
		Kept:  isFenced,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, other := k.New(e.Party(t), "order").(*rlock.Lock), k.New(e.Party(t), "order")
			hold := locktest.Acquire(t, lock, rlock.Watchdog)
			_, err := other.TryLock(t.Context(), 2*time.Second, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			e.settle() // Redis knows that it does not wait any more
			require.EqualValues(t, 1, infoOf(t, lock).Token)
			locktest.Unlock(t, hold)
			require.EqualValues(t, 2, locktest.Acquire(t, other, rlock.Watchdog).Token())
		},
	},
	{
		Name: "a lock whose counter cannot count is not acquired, and the error names the counter",
		Kept: isFenced,
		Test: func(t *testing.T, e *Env, k Kind) {
			for name, spoil := range map[string][]string{
				"a": {"SET", "redisson_lock_token:{a}", "a page"},
				"b": {"SADD", "redisson_lock_token:{b}", "a page"},
			} {
				lock := k.New(e.Party(t), name).(*rlock.Lock)
				e.doAll(t, spoil...)
				_, err := lock.Lock(t.Context(), rlock.Watchdog)
				require.ErrorAs(t, err, new(*rlock.ServerError))
				require.ErrorContains(t, err, "redisson_lock_token:{"+name+"}")
				require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
				require.EqualValues(t, 0, e.Servers[0].Do(t, "EXISTS", name))
			}
		},
	},
	{
		Name: "locks that are not fenced have no token, and no counter",
		Kept: func(k Kind) bool { return !k.Fenced },
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			hold := locktest.Acquire(t, k.New(p, "order"), rlock.Watchdog)
			require.Zero(t, hold.Token())
			e.everywhere(t, k, "order")
			_, err := p.Client.NewFencedLock(k.key("order")).
				TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired, "they exclude each other all the same")
			require.EqualValues(t, 0,
				e.Servers[0].Do(t, "EXISTS", "redisson_lock_token:{"+k.key("order")+"}"))
			locktest.Unlock(t, hold)
		},
	},
	{
		Name: "a MultiLock has the token of its fenced part if it has just one",
		Kept: only("multilock"),
		Test: func(t *testing.T, e *Env, k Kind) {
			c := e.Party(t).Client
			for i, parts := range [][]rlock.Locker{
				{c.NewLock("a"), c.NewFencedLock("b")},
				{c.NewFencedLock("b"), c.NewLock("a"), c.NewFairLock("c")},
			} {
				hold := locktest.Acquire(t, multilock.New(parts...), rlock.Watchdog)
				require.EqualValues(t, i+1, hold.Token())
				locktest.Unlock(t, hold)
			}
			two := multilock.New(c.NewFencedLock("b"), c.NewFencedLock("d"))
			require.Zero(t, locktest.Acquire(t, two, rlock.Watchdog).Token())
		},
	},
}

func isFenced(k Kind) bool { return k.Fenced }
