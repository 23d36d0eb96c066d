//go:build redis

package multilock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// Everything that a tracer hears of wholes and parts must end once, whatever happens to either.
func TestTracerHearsOfEveryEndOnceWhateverHappens(t *testing.T) {
	t.Parallel()
	seed := locktest.Seed(t, "HOLDFAST_STRESS_SEED")
	length := locktest.Length(t, "HOLDFAST_STRESS_TIME", time.Second)
	s, pairs := redistest.Start(t), locktest.NewPairs()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var clients []*rlock.Client
	for i := range 3 {
		clients = append(clients, newClient(t, s, rlock.Options{Tracer: pairs, Server: "cache",
			WatchdogLease: 100 * time.Millisecond, ReleaseOnClose: i == 1}))
	}
	var running sync.WaitGroup
	for i, c := range clients {
		next := clients[(i+1)%len(clients)]
		locks := []rlock.Locker{c.NewLock("a"), c.NewLock("b"),
			multilock.NewOn(c, "a", "b"), multilock.NewOn(c, "b", "c"),
			multilock.New(c.NewLock("a"), next.NewLock("d"), c.NewFairLock("e")),
			multilock.New(c.NewReadWriteLock("f").Read(), c.NewFencedLock("g"))}
		owners := []context.Context{rlock.WithOwner(t.Context())}
		for j := range 4 {
			w := locktest.Wanderer{Pairs: pairs, Locks: locks, Owners: owners,
				Random: rand.New(rand.NewPCG(seed, uint64(i*10+j)))}
			running.Go(func() { w.Run(ctx) })
		}
		running.Go(func() {
			locktest.LoseKeys(ctx, t, s, rand.New(rand.NewPCG(seed, uint64(i))),
				30*time.Millisecond, "a", "b", "c", "d", "e", "f", "g")
		})
	}
	running.Go(func() {
		select {
		case <-time.After(length * 3 / 4): // in the midst
		case <-ctx.Done():
		}
		closeClient(t, clients[1])
	})
	running.Wait()
	for _, c := range clients {
		closeClient(t, c)
	}
	eventually(t, pairs.Quiet, "the tracer of a client that is closed is told in the background")
	pairs.Check(t)
}
