package rlock_test

import (
	"context"
	"testing"
	"time"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// BenchmarkCluster compares what waking Redisson before 3.28 costs, which PubSubAuto does, with
// PubSubSharded, where no such Redisson is used.
func BenchmarkCluster(b *testing.B) {
	cluster := redistest.StartCluster(b, 3)
	ctx, cancel := context.WithCancel(b.Context())
	b.Cleanup(cancel)
	for name, mode := range map[string]rlock.PubSubMode{
		"auto": rlock.PubSubAuto, "sharded": rlock.PubSubSharded,
	} {
		clients := make([]*rlock.Client, 4)
		for i := range clients {
			clients[i] = newClientOn(b, cluster.Client(b), rlock.Options{PubSub: mode})
		}
		cycle := lockUnlock(ctx, b, clients[0])
		b.Run("uncontended/1/"+name, func(b *testing.B) {
			once := cycle("lock")
			for b.Loop() {
				once()
			}
		})
		b.Run("uncontended/64/"+name, func(b *testing.B) { inParallel(b, cycle) })
		// Each acquisition is a hand-over from another client.
		b.Run("contended/4 clients/"+name, func(b *testing.B) {
			turns := make(chan struct{}, b.N)
			for range b.N {
				turns <- struct{}{}
			}
			close(turns)
			ended := make(chan error)
			for _, c := range clients {
				go func() {
					var err error
					for range turns {
						var hold *rlock.Hold
						if hold, err = c.NewLock("hot").Lock(ctx, time.Minute); err == nil {
							err = hold.Unlock(ctx)
						}
						if err != nil {
							break
						}
					}
					ended <- err
				}()
			}
			for range clients {
				if err := <-ended; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
