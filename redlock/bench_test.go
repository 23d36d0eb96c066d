package redlock_test

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/redlock"
	"holdfast/rlock"
)

// BenchmarkLockUnlock measures an uncontended Lock and Unlock over five nodes against the same scripts sent to all nodes at
// once, each time going on when three have answered: what no RedLock can be faster than. Both take turns, so that the noise
// of the machine is the same for both. It reports the median of each, and their ratio.
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
			raw, lock, last := benchNodes(b)
			c.damage(last)
			b.Cleanup(func() { last.Resume(b) })
			lockUnlock(b, lock)
			var ours, floor []time.Duration
			b.ResetTimer()
			for i := range b.N {
				floor = append(floor, rawLockUnlock(b, raw, i+1))
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
		})
	}
}

// BenchmarkOneNodeHung takes and releases locks while one of five nodes hangs. It reports the largest number of goroutines
// after the first 1,000 locks, and after all of them, each beyond those that there were before the first.
func BenchmarkOneNodeHung(b *testing.B) {
	_, lock, last := benchNodes(b)
	last.Pause(b)
	b.Cleanup(func() { last.Resume(b) })
	before, early, most := runtime.NumGoroutine(), 0, 0
	b.ResetTimer()
	for i := range b.N {
		lockUnlock(b, lock)
		most = max(most, runtime.NumGoroutine()-before)
		if i < 1000 {
			early = most
		}
	}
	b.ReportMetric(float64(early), "goroutines-early")
	b.ReportMetric(float64(most), "goroutines")
}

// benchNodes starts five servers, and gives the connections of the raw scripts, a warm lock over all servers, and the last.
func benchNodes(b *testing.B) (raw []rueidis.Client, lock *redlock.Lock, last *redistest.Server) {
	servers := startNodes(b, 5)
	// rueidis has two ways to use a connection, and changes from the quicker to the one for many at a time when two commands
	// first meet on it, for good. Both sides use the second from the start, as in a service at work.
	pipelining := func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }
	for _, s := range servers {
		raw = append(raw, s.Client(b, pipelining))
	}
	lock = redlock.NewOn("redlock", redlock.Options{FsyncAlways: true}, newClients(b, servers, rlock.Options{}, pipelining)...)
	lockUnlock(b, lock)
	rawLockUnlock(b, raw, 0)
	return raw, lock, servers[4]
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
