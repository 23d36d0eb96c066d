//go:build redis

package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// BenchmarkCluster compares PubSubAuto, which wakes Redisson before 3.28, with PubSubSharded where
// no such Redisson is used. Each operation is a round of both, in turn, so that they see the same
// machine. The metric auto/sharded is the ratio of the medians: above 1 PubSubAuto is slower.
func BenchmarkCluster(b *testing.B) {
	cluster := redistest.StartCluster(b, 3)
	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)
	modes := []rlock.PubSubMode{rlock.PubSubAuto, rlock.PubSubSharded}
	for name, of := range map[string]struct{ clients, workers, cycles int }{
		"uncontended/1":       {1, 1, 100},
		"uncontended/64":      {1, 64, 40},
		"contended/4 clients": {4, 4, 75},
	} {
		b.Run(name, func(b *testing.B) {
			var clients [2][]*rlock.Client
			for i, mode := range modes {
				for range of.clients {
					clients[i] = append(clients[i],
						newClientOn(b, cluster.Client(b), rlock.Options{PubSub: mode}))
				}
			}
			round := func(i int) time.Duration {
				start := time.Now()
				ended := make(chan error)
				for w := range of.workers {
					lock := clients[i][w%of.clients].NewLock(fmt.Sprint("lock", w/of.clients))
					go func() {
						var err error
						for n := 0; n < of.cycles && err == nil; n++ {
							var hold *rlock.Hold
							if hold, err = lock.Lock(ctx, rlock.Watchdog); err == nil {
								err = hold.Unlock(ctx)
							}
						}
						ended <- err
					}()
				}
				for range of.workers {
					if err := <-ended; err != nil {
						b.Error(err)
					}
				}
				return time.Since(start)
			}
			var took [2][]time.Duration
			for first := 0; b.Loop(); first = 1 - first {
				for _, i := range []int{first, 1 - first} {
					took[i] = append(took[i], round(i))
				}
			}
			for i := range took {
				slices.Sort(took[i])
			}
			middle := len(took[0]) / 2
			b.ReportMetric(float64(took[0][middle])/float64(took[1][middle]), "auto/sharded")
		})
	}
}
