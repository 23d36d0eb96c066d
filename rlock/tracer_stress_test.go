//go:build redis

package rlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// Everything that a tracer hears of must end once, whatever callers, others and the client do.
func TestTracerHearsOfEveryEndOnceWhateverHappens(t *testing.T) {
	t.Parallel()
	seed := locktest.Seed(t, "HOLDFAST_STRESS_SEED")
	length := locktest.Length(t, "HOLDFAST_STRESS_TIME", time.Second)
	s, pairs := redistest.Start(t), locktest.NewPairs()
	options := []rlock.Options{
		{},
		{},
		{HandOver: rlock.HandOverNone, ReleaseOnClose: true},
		{Debug: true, ReleaseOnClose: true, HandOver: rlock.HandOverLocal},
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var clients []*rlock.Client
	var running sync.WaitGroup
	for i, o := range options {
		o.Tracer, o.WatchdogLease = pairs, 100*time.Millisecond
		c := newClient(t, s, o)
		clients = append(clients, c)
		var locks []rlock.Locker
		for _, k := range slices.Concat(kinds, nonReentrant()) {
			locks = append(locks, k.lock(c, k.name+" alone"), k.lock(c, "shared "+k.channel))
		}
		owners := []context.Context{rlock.WithOwner(t.Context()), rlock.WithOwner(t.Context())}
		for j := range 4 {
			w := locktest.Wanderer{Pairs: pairs, Locks: locks, Owners: owners,
				Random: dice(seed, i, j)}
			running.Go(func() { w.Run(ctx) })
		}
		running.Go(func() {
			for d := dice(seed, i, 5); ctx.Err() == nil; {
				pause(ctx.Done(), upTo(d, 20*time.Millisecond))
				lock := locks[d.IntN(len(locks))].(*rlock.Lock)
				if d.IntN(2) == 0 {
					_, _ = lock.ForceUnlock(ctx)
				} else if _, err := s.Call("DEL", lock.Name()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Go(func() {
		pause(ctx.Done(), length*3/4) // in the midst
		closeClient(t, clients[len(clients)-1])
	})
	running.Wait()
	for _, c := range clients {
		closeClient(t, c)
	}
	pairs.Check(t)
}
