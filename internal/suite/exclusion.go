package suite

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/rlock"
)

// Exclusion: a lock has one holder, or one kind of holder, at a time.
var exclusion = []Promise{
	{
		Name: "goroutines of three processes never hold it together",
		Test: func(t *testing.T, e *Env, k Kind) {
			const parties, goroutines, rounds = 3, 8, 3
			var working sync.WaitGroup
			var writers, readers atomic.Int32
			for range parties {
				p := e.Party(t)
				for i := range goroutines {
					lock, shared := k.New(p, "lock"), k.Shared
					if i%4 == 0 {
						lock, shared = k.Contender(p, "lock"), k.ContendersShare
					}
					working.Go(func() {
						for range rounds {
							hold, err := lock.Lock(t.Context(), rlock.Watchdog)
							if !assert.NoError(t, err) {
								return
							}
							if shared {
								readers.Add(1)
								assert.Zero(t, writers.Load(), "a writer is beside a reader")
								time.Sleep(time.Millisecond)
								assert.Zero(t, writers.Load(), "a writer came in beside a reader")
								readers.Add(-1)
							} else {
								assert.EqualValues(t, 1, writers.Add(1), "another holds it as well")
								time.Sleep(time.Millisecond)
								assert.Zero(t, readers.Load(), "a reader is beside a writer")
								writers.Add(-1)
							}
							assert.NoError(t, hold.Unlock())
						}
					})
				}
			}
			working.Wait()
			e.RequireNothingLeft(t)
		},
	},
	{
		Name: "a context without an owner never re-enters",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			locktest.Acquire(t, k.New(p, "lock"), rlock.Watchdog)
			_, err := k.Contender(p, "lock").TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
		},
	},
	{
		Name: "two owners of one client exclude each other",
		Test: func(t *testing.T, e *Env, k Kind) {
			p := e.Party(t)
			locktest.AcquireWith(rlock.WithOwner(t.Context()), t, k.New(p, "lock"), rlock.Watchdog)
			_, err := k.Contender(p, "lock").TryLock(rlock.WithOwner(t.Context()), rlock.NoWait,
				rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
		},
	},
	{
		Name: "one owner of two clients is two owners",
		Test: func(t *testing.T, e *Env, k Kind) {
			ctx := rlock.WithOwner(t.Context())
			locktest.AcquireWith(ctx, t, k.New(e.Party(t), "lock"), rlock.Watchdog)
			_, err := k.Contender(e.Party(t), "lock").TryLock(ctx, rlock.NoWait, rlock.Watchdog)
			require.ErrorIs(t, err, rlock.ErrNotAcquired)
		},
	},
	{
		Name: "goroutines that share an owner share the hold",
		Kept: func(k Kind) bool { return !k.Flat },
		Test: func(t *testing.T, e *Env, k Kind) {
			const goroutines = 8
			lock, ctx := k.New(e.Party(t), "lock"), rlock.WithOwner(t.Context())
			var acquisitions []<-chan locktest.Outcome
			for range goroutines {
				acquisitions = append(acquisitions, locktest.LockInBackground(ctx, lock, rlock.Watchdog))
			}
			other := k.Contender(e.Party(t), "lock")
			for _, done := range acquisitions {
				hold := locktest.Acquired(t, done)
				defer func() {
					_, err := other.TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
					require.ErrorIs(t, err, rlock.ErrNotAcquired, "until the last of them unlocks")
					locktest.Unlock(t, hold)
				}()
			}
		},
	},
	{
		Name: "a lock that is released can be acquired at once",
		Test: func(t *testing.T, e *Env, k Kind) {
			lock, other := k.New(e.Party(t), "lock"), k.Contender(e.Party(t), "lock")
			for range 3 {
				locktest.Unlock(t, locktest.Acquire(t, lock, rlock.Watchdog))
				locktest.Unlock(t, locktest.Acquire(t, other, rlock.Watchdog))
			}
			e.RequireNothingLeft(t)
		},
	},
}
