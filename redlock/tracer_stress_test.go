//go:build redis

package redlock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"holdfast/internal/locktest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Everything that a tracer hears of must end once, also when nodes lose what they have, parts
// rejoin and the client whose tracer it is closes first.
func TestTracerHearsOfEveryEndOnceWhateverHappens(t *testing.T) {
	t.Parallel()
	seed := locktest.Seed(t, "HOLDFAST_STRESS_SEED")
	length := locktest.Length(t, "HOLDFAST_STRESS_TIME", time.Second)
	servers, pairs := startNodes(t, 3), locktest.NewPairs()
	clients := newClients(t, servers,
		rlock.Options{Tracer: pairs, WatchdogLease: 150 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	locks := []rlock.Locker{redlock.NewOn("a", atOnce, clients...),
		redlock.NewOn("b", atOnce, clients...), redlock.NewOn("c", atOnce, clients...)}
	owners := []context.Context{rlock.WithOwner(t.Context()), rlock.WithOwner(t.Context())}
	var running sync.WaitGroup
	for j := range 8 {
		w := locktest.Wanderer{Pairs: pairs, Locks: locks, Owners: owners,
			Random: rand.New(rand.NewPCG(seed, uint64(j)))}
		running.Go(func() { w.Run(ctx) })
	}
	for i, s := range servers {
		running.Go(func() {
			locktest.LoseKeys(ctx, t, s, rand.New(rand.NewPCG(seed, uint64(100+i))),
				10*time.Millisecond, "a", "b", "c")
		})
	}
	running.Go(func() {
		select {
		case <-time.After(length * 3 / 4): // in the midst
		case <-ctx.Done():
		}
		closeClient(t, clients[0])
	})
	running.Wait()
	for _, c := range clients {
		closeClient(t, c)
	}
	eventually(t, pairs.Quiet, "the tracer of a client that is closed is told in the background")
	pairs.Check(t)
}
