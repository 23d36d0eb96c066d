package redlock_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/redlock"
	"holdfast/rlock"
)

// BenchmarkLockUnlock measures an uncontended Lock and Unlock over five nodes against the same scripts sent to all nodes at
// once, each time going on when three have answered: what no RedLock can be faster than. Both take turns, so that the noise
// of the machine is the same for both. It reports the median of each and their ratio, and by how many goroutines the RedLock
// has grown since before the first lock. (The raw scripts leave one behind for every command to a node that hangs.)
func BenchmarkLockUnlock(b *testing.B) {
	for _, c := range []struct {
		name   string
		damage func(s *redistest.Server)
	}{
		{"all up", func(*redistest.Server) {}},
		{"one hung", func(s *redistest.Server) { s.Pause(b) }},
		{"one killed", func(s *redistest.Server) { s.Kill(b) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var raw []rueidis.Client
			var clients []*rlock.Client
			var last *redistest.Server
			for range 5 {
				last = redistest.Start(b)
				raw = append(raw, last.Client(b))
				client, err := rlock.New(last.Client(b), rlock.Options{Logger: slog.New(slog.DiscardHandler)})
				require.NoError(b, err)
				b.Cleanup(func() { require.NoError(b, client.Close(context.Background())) })
				clients = append(clients, client)
			}
			options := redlock.Options{MaxLease: time.Minute, FsyncAlways: true}
			lock := redlock.NewOn("redlock", options, clients...)
			lockUnlock(b, lock)
			rawLockUnlock(b, raw, 0)
			c.damage(last)
			b.Cleanup(func() { last.Resume(b) })
			lockUnlock(b, lock)

			var ours, floor []time.Duration
			before := runtime.NumGoroutine()
			left := 0
			b.ResetTimer()
			for i := range b.N {
				goroutines := runtime.NumGoroutine()
				floor = append(floor, rawLockUnlock(b, raw, i+1))
				left += runtime.NumGoroutine() - goroutines
				ours = append(ours, lockUnlock(b, lock))
			}
			b.StopTimer()
			slices.Sort(ours)
			slices.Sort(floor)
			at := len(ours) / 2
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(ours[at].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(floor[at].Nanoseconds()), "raw-p50-ns")
			b.ReportMetric(float64(ours[at])/float64(floor[at]), "p50-ratio")
			b.ReportMetric(float64(runtime.NumGoroutine()-before-left), "more-goroutines")
		})
	}
}

func lockUnlock(b *testing.B, lock *redlock.Lock) time.Duration {
	start := time.Now()
	hold, err := lock.Lock(b.Context(), 10*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	if err := hold.Unlock(b.Context()); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

// rawLockUnlock is the floor. On each node the release follows the answer to the acquire.
func rawLockUnlock(b *testing.B, nodes []rueidis.Client, i int) time.Duration {
	const quorum = 3
	start := time.Now()
	owner := "raw:" + strconv.Itoa(i)
	granted, unlock, released := make(chan bool, len(nodes)), make(chan struct{}), make(chan bool, len(nodes))
	for _, node := range nodes {
		go func() {
			vote, err := lua.AcquireVote(context.Background(), node, "raw", owner, 10*time.Second, lua.Delay{})
			granted <- err == nil && vote.Granted
			<-unlock
			reply, err := lua.Release(context.Background(), node, "raw", owner, 0,
				lua.Announcement{Channel: lua.Channel("raw"), Message: lua.Unlocked})
			released <- err == nil && reply.Held
		}()
	}
	for _, answers := range []chan bool{granted, released} {
		for yes, all := 0, 0; yes < quorum; all++ {
			if all == len(nodes) {
				b.Fatal("no quorum for the raw scripts")
			}
			if <-answers {
				yes++
			}
		}
		if answers == granted {
			close(unlock)
		}
	}
	return time.Since(start)
}
