//go:build redis

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

// damages are states of one of five nodes.
var damages = []struct {
	name   string
	damage func(b *testing.B, s *redistest.Server)
}{
	{"all up", func(*testing.B, *redistest.Server) {}},
	{"one hung", func(b *testing.B, s *redistest.Server) {
		s.Pause(b)
		b.Cleanup(func() { s.Resume(b) })
	}},
	{"one dead", func(b *testing.B, s *redistest.Server) { s.Kill(b) }},
}

// BenchmarkLockUnlock measures an uncontended Lock and Unlock over five nodes against a lower bound
// for any RedLock: a goroutine for each node that sends the smallest possible scripts, without
// support for waits, nested locks or restarts, and continues when three have replied. It also
// measures the same with the scripts of this library, which separates their cost from that of this
// package. All of them alternate in laps of 50 locks, so that the noise of the machine is the same
// for each, and what a lap leaves to the background is mostly its own. The ratios of p50 are the
// medians of those of neighbouring laps. goroutines is how many more there are after the laps than
// before. The floor leaves one for each lock on a node that hangs.
func BenchmarkLockUnlock(b *testing.B) {
	for _, c := range damages {
		b.Run(c.name, func(b *testing.B) {
			n := newBenchNodes(b)
			c.damage(b, n.servers[4])
			var ours, scripts, floor laps
			b.ResetTimer()
			for left := b.N; left > 0; left -= lapLength {
				floor.run(min(left, lapLength), func() { n.floorLap(b, n.smallest) })
				ours.run(min(left, lapLength), func() { n.lap(b) })
				scripts.run(min(left, lapLength), func() { n.floorLap(b, ownScripts) })
			}
			b.StopTimer()
			b.ReportMetric(0, "ns/op")
			ours.report(b, "")
			floor.report(b, "floor-")
			b.ReportMetric(ours.ratio(&floor), "p50-ratio")
			b.ReportMetric(float64(percentile(ours.took, 99))/float64(percentile(floor.took, 99)),
				"p99-ratio")
			b.ReportMetric(scripts.ratio(&floor), "scripts-p50-ratio")
		})
	}
}

// lapLength is how many locks each takes in a lap.
const lapLength = 50

// laps has the times of one of them.
type laps struct {
	took   []time.Duration   // of all locks
	turns  [][]time.Duration // of the locks of each lap, sorted
	allocs uint64
	bytes  uint64
	left   int // goroutines that its laps left
}

func (l *laps) run(n int, lap func()) {
	// By now the background work of the previous lap is over.
	<-time.After(2 * time.Millisecond)
	var before, after runtime.MemStats
	goroutines := runtime.NumGoroutine()
	runtime.ReadMemStats(&before)
	turn := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		lap()
		turn = append(turn, time.Since(start))
	}
	runtime.ReadMemStats(&after)
	<-time.After(2 * time.Millisecond)
	l.left += runtime.NumGoroutine() - goroutines
	l.allocs += after.Mallocs - before.Mallocs
	l.bytes += after.TotalAlloc - before.TotalAlloc
	l.took = append(l.took, turn...)
	slices.Sort(turn)
	l.turns = append(l.turns, turn)
}

func percentile(sorted []time.Duration, p int) time.Duration { return sorted[len(sorted)*p/100] }

func (l *laps) report(b *testing.B, prefix string) {
	slices.Sort(l.took)
	b.ReportMetric(float64(percentile(l.took, 50).Nanoseconds())/1000, prefix+"p50-us")
	b.ReportMetric(float64(percentile(l.took, 99).Nanoseconds())/1000, prefix+"p99-us")
	b.ReportMetric(float64(l.allocs)/float64(len(l.took)), prefix+"allocs")
	b.ReportMetric(float64(l.bytes)/float64(len(l.took)), prefix+"bytes")
	b.ReportMetric(float64(l.left), prefix+"goroutines")
}

// ratio returns the ratio of the medians of the two.
func (l *laps) ratio(floor *laps) float64 {
	ratios := make([]float64, len(l.turns))
	for i := range ratios {
		ratios[i] = float64(percentile(l.turns[i], 50)) / float64(percentile(floor.turns[i], 50))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// BenchmarkOneNodeHung locks and unlocks while one of five nodes hangs. It reports the largest
// number of goroutines after the first 1,000 locks, and after all of them, each beyond those before
// the first.
func BenchmarkOneNodeHung(b *testing.B) {
	n := newBenchNodes(b)
	last := n.servers[4]
	last.Pause(b)
	b.Cleanup(func() { last.Resume(b) })
	before, early, most := runtime.NumGoroutine(), 0, 0
	b.ResetTimer()
	for i := range b.N {
		n.lap(b)
		most = max(most, runtime.NumGoroutine()-before)
		if i < 1000 {
			early = most
		}
	}
	b.ReportMetric(float64(early), "goroutines-early")
	b.ReportMetric(float64(most), "goroutines")
}

// benchNodes is five servers, locks over all of them, and separate connections for the floor.
type benchNodes struct {
	servers  []*redistest.Server
	raw      []rueidis.Client
	locks    [16]*redlock.Lock
	smallest scripts
	taken    int // by any of them
}

// scripts take and release a key on a node for a floor. Each reports whether it did.
type scripts struct {
	acquire, release func(node rueidis.Client, key, owner string) bool
}

// ownScripts are those of this library.
var ownScripts = scripts{
	acquire: func(node rueidis.Client, key, owner string) bool {
		vote, err := lua.AcquireVote(context.Background(), node, key, owner, 10*time.Second,
			lua.Delay{})
		return err == nil && vote.Granted
	},
	release: func(node rueidis.Client, key, owner string) bool {
		lock := lua.NewExclusive(key, false)
		reply, err := lock.Release(context.Background(), node, owner, 0, lua.HandOver{})
		return err == nil && reply.Held
	},
}

// load makes the servers load the smallest scripts.
func (n *benchNodes) load(b *testing.B) {
	var acquire, release string
	for _, s := range n.servers {
		acquire = s.DoString(b, "SCRIPT", "LOAD",
			"return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])")
		release = s.DoString(
			b,
			"SCRIPT",
			"LOAD",
			"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
		)
	}
	n.smallest.acquire = func(node rueidis.Client, key, owner string) bool {
		command := node.B().Evalsha().Sha1(acquire).Numkeys(1).Key(key).Arg(owner, "10000").Build()
		return node.Do(context.Background(), command).Error() == nil
	}
	n.smallest.release = func(node rueidis.Client, key, owner string) bool {
		command := node.B().Evalsha().Sha1(release).Numkeys(1).Key(key).Arg(owner).Build()
		freed, err := node.Do(context.Background(), command).AsInt64()
		return err == nil && freed == 1
	}
}

func newBenchNodes(b *testing.B) *benchNodes {
	n := &benchNodes{servers: startNodes(b, 5)}
	// rueidis has two ways to use a connection. It changes for good from the quicker one to the one
	// for concurrent commands when two commands first meet. All use the second from the start, as
	// in a running service.
	pipelining := func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }
	for _, s := range n.servers {
		n.raw = append(n.raw, s.Client(b, pipelining))
	}
	clients := newClients(b, n.servers, rlock.Options{}, pipelining)
	for i := range n.locks {
		n.locks[i] = redlock.NewOn(
			"redlock"+strconv.Itoa(i),
			redlock.Options{FsyncAlways: true},
			clients...)
	}
	n.load(b)
	for range n.locks {
		n.lap(b)
		n.floorLap(b, n.smallest)
		n.floorLap(b, ownScripts)
	}
	return n
}

// lap takes and releases one lock after another, so that none meets what a node has not yet
// released of the previous lap.
func (n *benchNodes) lap(b *testing.B) {
	n.taken++
	hold, err := n.locks[n.taken%len(n.locks)].Lock(b.Context(), 10*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	if err := hold.Unlock(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// floorLap is the floor. On each node the release follows the reply to the acquire.
func (n *benchNodes) floorLap(b *testing.B, s scripts) {
	const quorum = 3
	n.taken++
	// Keys that none of the previous laps used, with whatever scripts.
	key, owner := "raw"+strconv.Itoa(n.taken%(3*len(n.locks))), "raw:"+strconv.Itoa(n.taken)
	granted := make(chan bool, len(n.raw))
	unlock := make(chan struct{})
	released := make(chan bool, len(n.raw))
	for _, node := range n.raw {
		go func() {
			granted <- s.acquire(node, key, owner)
			<-unlock
			released <- s.release(node, key, owner)
		}()
	}
	for _, answers := range []chan bool{granted, released} {
		for yes, all := 0, 0; yes < quorum; all++ {
			if all == len(n.raw) {
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
}
