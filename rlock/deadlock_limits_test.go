package rlock_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/rlock"
)

// keepHeld takes locks, each by an owner of its own, and has the server refuse them from then on.
func (b *bubble) keepHeld(t *testing.T, names ...string) (holds []*rlock.Hold) {
	owners := make(map[string]string)
	for _, name := range names {
		hold := take(t, b.client.NewLock(name), longLease)
		holds, owners[name] = append(holds, hold), hold.Owner()
	}
	b.reply("acquire.lua", func(args []string) any {
		reply := heldFor(30_000)(args).([]any)
		reply[1] = owners[args[0]]
		return reply
	})
	return holds
}

func TestCallerThatClosesACycleFailsAtOnceUnlessAnotherWaitEndsSoon(t *testing.T) {
	t.Parallel()
	const longWait = 20 * time.Second
	for _, of := range []struct {
		name                   string
		first, second, closing time.Duration // waits
		later                  time.Duration // when the one that closes the cycle begins
		fails                  bool
		logged                 int
	}{
		{"equal waits", longWait, longWait, longWait, 0, true, 1},
		{"a longer wait", longWait, longWait, time.Hour, time.Second, true, 1},
		{"no limit", time.Minute, rlock.Forever, rlock.Forever, 0, true, 1},
		{"a wait shorter than the others", longWait, rlock.Forever, 5 * time.Second, 0, true, 1},
		{"another ends soon", longWait, rlock.Forever, longWait, longWait - time.Second, false, 1},
		{"another ends soon, but later", longWait, longWait, 600 * time.Millisecond,
			longWait - time.Second, true, 0},
		{"short waits", time.Second / 3, time.Second / 3, time.Second / 3, 0, false, 0},
		{"another short wait", rlock.Forever, time.Second, rlock.Forever, 0, false, 0},
	} {
		var log logtest.Lines
		inBubble(t, rlock.Options{Logger: log.Logger()}, func(t *testing.T, b *bubble) {
			holds := b.keepHeld(t, "a", "b", "c")
			call := func(has, wants int, wait time.Duration) (time.Duration, error) {
				began := time.Now()
				_, err := b.client.NewLock(holds[wants].Name()).TryLock(holds[has].Context(), wait, longLease)
				return time.Since(began), err
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var others sync.WaitGroup
			for has, wait := range []time.Duration{of.first, of.second} {
				others.Go(func() {
					took, err := call(has, has+1, wait)
					require.NotErrorIs(t, err, rlock.ErrDeadlock, of.name)
					if ctx.Err() == nil { // its lock was not released meanwhile
						require.Equal(t, wait, took, of.name)
					}
				})
				time.Sleep(time.Millisecond) // equal waits end one after the other
			}
			time.Sleep(of.later)
			closing, stop := context.WithCancel(ctx)
			var took time.Duration
			var err error
			others.Go(func() {
				defer stop()
				took, err = call(2, 0, of.closing)
			})
			synctest.Wait()
			require.Equal(t, of.fails, closing.Err() != nil, of.name)
			if of.fails {
				require.Zero(t, took, of.name)
				require.ErrorIs(t, err, rlock.ErrDeadlock, of.name)
				for _, h := range holds {
					require.ErrorContains(t, err, strconv.Quote(h.Name()), of.name)
				}
			}
			synctest.Wait()
			require.Len(t, log.With("wait for each other in a cycle"), of.logged, of.name)
			cancel()
			for _, h := range holds {
				unlock(t, h) // ends the contexts of the calls, and so those that have no limit
			}
			others.Wait()
		})
	}
}

// A search visits those that hold the wanted lock, however many others wait for it.
func TestCallersThatWaitForOneLockDoNotVisitEachOther(t *testing.T) {
	const callers = 1000
	inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
		names := []string{"hot"}
		for i := range callers {
			names = append(names, strconv.Itoa(i))
		}
		holds := b.keepHeld(t, names...)
		before := rlock.VisitedCalls()
		var calls sync.WaitGroup
		var late atomic.Int32
		for i := range callers {
			calls.Go(func() {
				ctx := holds[i+1].Context()
				if i%2 == 0 {
					ctx = rlock.WithOwner(ctx)
				}
				began := time.Now()
				_, err := b.client.NewLock("hot").TryLock(ctx, 2*time.Second, longLease)
				var held *rlock.HeldError
				require.ErrorAs(t, err, &held)
				require.Equal(t, "reentrant", held.HolderKind)
				if time.Since(began) != 2*time.Second {
					late.Add(1)
				}
			})
		}
		synctest.Wait()
		require.Equal(t, callers, rlock.BlockedCalls(b.client))
		calls.Wait()
		require.Zero(t, rlock.VisitedCalls()-before)
		require.Zero(t, late.Load())
		for _, h := range holds {
			unlock(t, h)
		}
	})
}

// Other callers wait for a search. It looks at each call once, and at a thousand of them at most.
func TestSearchForACycleIsBounded(t *testing.T) {
	for name, of := range map[string]struct{ layers, readers, most int }{
		"many ways":    {layers: 20, readers: 2, most: 4 * 20},
		"many callers": {layers: 1, readers: rlock.MostVisited + 500, most: rlock.MostVisited},
	} {
		inBubble(t, rlock.Options{}, func(t *testing.T, b *bubble) {
			holds := b.keepHeld(t, "first")
			b.reply("write_acquire.lua", heldFor(30_000))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var calls sync.WaitGroup
			waits := func(with context.Context, layer int) { // it waits for all readers of the layer
				calls.Go(func() {
					lock := b.client.NewReadWriteLock(strconv.Itoa(layer)).Write()
					_, err := lock.Lock(with, longLease)
					require.ErrorIs(t, err, context.Canceled, name)
				})
			}
			for layer := range of.layers {
				lock := b.client.NewReadWriteLock(strconv.Itoa(layer)).Read()
				for range of.readers {
					hold := takeWith(ctx, t, lock, longLease)
					holds = append(holds, hold)
					waits(hold.Context(), layer+1)
				}
			}
			synctest.Wait()
			before := rlock.VisitedCalls()
			begins, stop := context.WithCancel(holds[0].Context())
			waits(begins, 0)
			synctest.Wait()
			require.Equal(t, 1+of.layers*of.readers, rlock.BlockedCalls(b.client), name)
			require.LessOrEqual(t, rlock.VisitedCalls()-before, of.most, name)
			cancel()
			stop()
			calls.Wait()
			for _, h := range holds {
				unlock(t, h)
			}
		})
	}
}
