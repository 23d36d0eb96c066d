//go:build redis && !race

package rlock_test

import (
	"context"
	"math"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A cycle of Lock and Unlock costs this many objects of memory. The race detector allocates more.
// What else the process does is counted, too: now and then an object of rueidis, and whatever runs
// in the background. So the best of several runs is compared, and may be half an object more.

func TestUncontendedCycleAllocatesFewObjects(t *testing.T) {
	single := redistest.Start(t).Client(t)
	for _, of := range []struct {
		name               string
		redis              rueidis.Client
		goroutines, cycles int
		most               float64
	}{
		{"beside others", single, 64, 500, 2},
		{"alone", single, 1, 5000, 2},
		{"on a cluster", redistest.StartCluster(t, 3).Client(t), 64, 500, 2},
	} {
		c := newClientOn(t, of.redis, rlock.Options{})
		cycles := func(n int) {
			var work sync.WaitGroup
			for i := range of.goroutines {
				lock := c.NewLock("lock:" + strconv.Itoa(i))
				work.Go(func() {
					for range n {
						hold, err := lock.Lock(context.Background(), rlock.Watchdog)
						if err != nil {
							t.Error(err)
							return
						}
						if err := hold.Unlock(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			work.Wait()
		}
		cycles(10) // allocates what is made once
		best := math.Inf(1)
		for try := 0; try < 10 && best >= of.most+0.5; try++ {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			cycles(of.cycles)
			runtime.ReadMemStats(&after)
			each := float64(after.Mallocs-before.Mallocs) / float64(of.goroutines*of.cycles)
			t.Logf("%s: %.2f objects", of.name, each)
			best = min(best, each)
		}
		require.Less(t, best, of.most+0.5, of.name)
	}
}

// A process may have a client for each of a thousand tenants. 200 clients make chance small.
func TestIdleClientCostsLittleMemory(t *testing.T) {
	redis := redistest.Start(t).Client(t)
	clients := make([]*rlock.Client, 200)
	t.Cleanup(func() {
		for _, c := range clients {
			closeClient(t, c)
		}
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range clients {
		clients[i], _ = rlock.New(redis, rlock.Options{})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int64(after.HeapAlloc-before.HeapAlloc) / int64(len(clients))
	t.Logf("%d bytes", each)
	require.Less(t, each, int64(8<<10))
}
