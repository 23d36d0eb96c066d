package rlock_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

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
