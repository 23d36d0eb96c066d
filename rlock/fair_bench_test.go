//go:build redis

package rlock_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

// lengths has the lengths of the queue.
var lengths = []int{1, 10, 100, 1000}

// BenchmarkFairHandOverScripts measures what a hand-over costs Redis by its own SLOWLOG, without
// the network: the holder releases, and the head takes the lock. The old holder then queues at the
// end, which is not counted.
func BenchmarkFairHandOverScripts(b *testing.B) {
	for _, length := range lengths {
		b.Run(strconv.Itoa(length), func(b *testing.B) {
			ctx := context.Background()
			s := redistest.Start(b)
			redis := s.Client(b)
			fair := lua.Fair{Lock: "job", Counted: true}
			ask := func(owner int) {
				_, err := fair.Acquire(
					ctx,
					redis,
					lua.FairRequest{
						Owner:  ownerNumber(owner),
						Count:  1,
						Lease:  30 * time.Second,
						Waits:  true,
						Window: 5 * time.Minute,
					},
				)
				if err != nil {
					b.Fatal(err)
				}
			}
			for i := range length + 1 {
				ask(i)
			}
			scripts := map[string]string{
				"release": script(b, "fair_release.lua"),
				"take":    script(b, "fair_acquire.lua"),
			}
			spent := map[string]int64{}
			count := func(script string, run func()) {
				s.Do(b, "SLOWLOG", "RESET")
				s.Do(b, "CONFIG", "SET", "slowlog-log-slower-than", "0")
				run()
				s.Do(b, "CONFIG", "SET", "slowlog-log-slower-than", "-1")
				for _, entry := range s.Do(b, "SLOWLOG", "GET", "10").([]any) {
					fields := entry.([]any)
					if command := fields[3].([]any); len(command) > 1 &&
						command[1] == scripts[script] {
						spent[script] += fields[2].(int64)
					}
				}
			}
			n := 0
			for b.Loop() {
				count("release", func() {
					if _, err := fair.Release(ctx, redis, 0, ownerNumber(n%(length+1))); err != nil {
						b.Fatal(err)
					}
				})
				count("take", func() { ask((n + 1) % (length + 1)) })
				ask(n % (length + 1))
				n++
			}
			for what, microseconds := range spent {
				b.ReportMetric(float64(microseconds)/float64(n), what+"-µs/op")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func ownerNumber(n int) string { return fmt.Sprintf("3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:%d", n) }

// BenchmarkFairHandOver measures a hand-over between two clients, from Unlock to the return of the
// other's Lock, with more waiters of both behind.
func BenchmarkFairHandOver(b *testing.B) {
	for _, length := range lengths {
		b.Run(strconv.Itoa(length), func(b *testing.B) {
			s := redistest.Start(b)
			clients := []*rlock.Client{
				newClient(b, s, rlock.Options{}), newClient(b, s, rlock.Options{}),
			}
			ctx, cancel := context.WithCancel(context.Background())
			got := make(chan *rlock.Hold)
			wait := func(i int) {
				go func() {
					if hold, err := clients[i%2].NewFairLock("job").Lock(ctx, longLease); err == nil {
						got <- hold
					}
				}()
				for want := min(i, length); ; {
					if n, _ := s.Call("LLEN", "redisson_lock_queue:{job}"); n == int64(want) {
						return
					}
				}
			}
			for i := range length + 1 {
				wait(i)
			}
			hold, i := <-got, length+1
			var spent time.Duration
			for b.Loop() {
				start := time.Now()
				if err := hold.Unlock(ctx); err != nil {
					b.Fatal(err)
				}
				hold = <-got
				spent += time.Since(start)
				wait(i)
				i++
			}
			b.ReportMetric(float64(spent.Microseconds())/float64(i-length-1), "handover-µs/op")
			b.ReportMetric(0, "ns/op")
			cancel()
			if err := hold.Unlock(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
