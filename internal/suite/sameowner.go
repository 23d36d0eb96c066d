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
	"holdfast/rlock"
)

// Same owner: goroutines that share an owner call at the same time.
var sameOwner = []Promise{
	{
		Name: "each level is released by one of many calls",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, ctx := k.New(e.Party(t), "lock"), rlock.WithOwner(t.Context())
			holds := k.nest(ctx, t, lock, rlock.Watchdog)
			var calling sync.WaitGroup
			var released, refused atomic.Int32
			for i := range 8 * len(holds) {
				calling.Go(func() {
					var err error
					if i%2 == 0 {
						err = holds[i/2%len(holds)].Unlock()
					} else {
						err = lock.Unlock(ctx)
					}
					if err == nil {
						released.Add(1)
					} else if assert.ErrorIs(t, err, rlock.ErrNotHeld) {
						refused.Add(1)
					}
				})
			}
			calling.Wait()
			require.EqualValues(t, len(holds), released.Load())
			require.EqualValues(t, 7*len(holds), refused.Load())
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "levels are counted right while goroutines come and go",
		Kept: nests,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, ctx := k.New(e.Party(t), "lock"), rlock.WithOwner(t.Context())
			outer := locktest.AcquireWith(ctx, t, lock, rlock.Watchdog)
			var working sync.WaitGroup
			for i := range 6 {
				working.Go(func() {
					for range 10 {
						hold, err := lock.Lock(ctx, []rlock.Lease{rlock.Watchdog, rlock.Lease(time.Hour)}[i%2])
						if !assert.NoError(t, err) {
							return
						}
						assert.True(t, hold.Valid())
						assert.NoError(t, hold.Unlock())
					}
				})
			}
			working.Wait()
			requireBusy(t, k.Contender(e.Party(t), "lock"))
			locktest.Unlock(t, outer)
			require.ErrorIs(t, lock.Unlock(ctx), rlock.ErrNotHeld)
			e.RequireNothingLeft(t)
		},
	},
	{
		Name:  "a call waits for another one of its owner no longer than its wait",
		Kept:  nests,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, ctx := k.New(e.Party(t), "lock"), rlock.WithOwner(t.Context())
			e.pause(t)
			first := locktest.LockInBackground(ctx, lock, rlock.Watchdog)
			e.settle()
			start := time.Now()
			_, err := lock.TryLock(ctx, 50*time.Millisecond, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
			// In a MultiLock, the part after the busy one has 10 ms for its reply.
			require.LessOrEqual(t, time.Since(start), 60*time.Millisecond)

			start = time.Now()
			cancelled, cancel := context.WithCancel(ctx)
			second := locktest.LockInBackground(cancelled, lock, rlock.Watchdog)
			e.settle()
			cancel()
			require.ErrorIs(t, locktest.Result(t, second).Err, context.Canceled)
			require.Zero(t, time.Since(start))
			require.Empty(t, first)
		},
	},
	{
		Name:  "an unlock beside a nested lock that hangs ends its hold within CommandTimeout",
		Kept:  nests,
		Exact: true,
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t, func(o *rlock.Options) { o.CommandTimeout = 2 * time.Second })
			lock, ctx := k.New(p, "lock"), rlock.WithOwner(t.Context())
			outer := locktest.AcquireWith(ctx, t, lock, rlock.Lease(time.Hour))
			e.pause(t)
			nested := locktest.LockInBackground(ctx, lock, rlock.Lease(time.Hour))
			e.settle()
			start := time.Now()
			require.ErrorIs(t, outer.Unlock(), rlock.ErrOutcomeUnknown)
			require.Equal(t, 2*time.Second, time.Since(start))
			require.ErrorIs(t, outer.Err(), rlock.ErrReleased)
			e.resume(t)
			inner := locktest.Acquired(t, nested)
			require.True(t, inner.Valid())
			requireBusy(t, k.Contender(e.Party(t), "lock"))
			locktest.Unlock(t, inner)
			e.RequireNothingLeft(t)
		},
	},
}
