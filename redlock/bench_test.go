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

// damages are what may be the matter with one of five nodes.
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

// BenchmarkLockUnlock measures an uncontended Lock and Unlock over five nodes against what no RedLock can be faster than: a
// goroutine for each node that sends the smallest scripts there are, without room for a wait, a nested lock or a restart, and
// goes on when three have answered. It also measures the same with the scripts of this library, so that what those cost and
// what this package costs can be told apart. All take turns of 50 locks, so that the noise of the machine is the same for
// each, and what a turn leaves to the background is mostly its own. The ratios of p50 are the medians of those of neighbouring
// turns. goroutines are how many more there are after the turns than before them. The floor leaves one for each lock
// on a node that hangs.
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
			b.ReportMetric(float64(percentile(ours.took, 99))/float64(percentile(floor.took, 99)), "p99-ratio")
			b.ReportMetric(scripts.ratio(&floor), "scripts-p50-ratio")
		})
	}
}

// lapLength is how many locks one side takes before it is the turn of the other.
const lapLength = 50

// laps are what one side has needed for its turns.
type laps struct {
	took   []time.Duration   // of all locks
	turns  [][]time.Duration // of the locks of each turn, sorted
	allocs uint64
	bytes  uint64
	left   int // goroutines that were left by its turns
}

func (l *laps) run(n int, lap func()) {
	// What the turn before has left to the background is over by now.
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

// ratio is that of the medians of two sides.
func (l *laps) ratio(floor *laps) float64 {
	ratios := make([]float64, len(l.turns))
	for i := range ratios {
		ratios[i] = float64(percentile(l.turns[i], 50)) / float64(percentile(floor.turns[i], 50))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// BenchmarkOneNodeHung takes and releases locks while one of five nodes hangs. It reports the largest number of goroutines
// after the first 1,000 locks, and after all of them, each beyond those that there were before the first.
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

// benchNodes are five servers, locks over all of them, and connections of their own for the floor.
type benchNodes struct {
	servers  []*redistest.Server
	raw      []rueidis.Client
	locks    [16]*redlock.Lock
	smallest scripts
	taken    int // by any side
}

// scripts are how a floor takes and releases a key on a node. Each tells whether that was done.
type scripts struct {
	acquire, release func(node rueidis.Client, key, owner string) bool
}

// ownScripts are those of this library.
var ownScripts = scripts{
	acquire: func(node rueidis.Client, key, owner string) bool {
		vote, err := lua.AcquireVote(context.Background(), node, key, owner, 10*time.Second, lua.Delay{})
		return err == nil && vote.Granted
	},
	release: func(node rueidis.Client, key, owner string) bool {
		reply, err := lua.NewExclusive(key, false).Release(context.Background(), node, owner, 0, lua.HandOver{})
		return err == nil && reply.Held
	},
}

// load makes the servers know the smallest scripts.
func (n *benchNodes) load(b *testing.B) {
	var acquire, release string
	for _, s := range n.servers {
		acquire = s.DoString(b, "SCRIPT", "LOAD", "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])")
		release = s.DoString(b, "SCRIPT", "LOAD",
			"if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")
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
	// rueidis has two ways to use a connection, and changes from the quicker to the one for many at a time when two commands
	// first meet on it, for good. All sides use the second from the start, as in a service at work.
	pipelining := func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }
	for _, s := range n.servers {
		n.raw = append(n.raw, s.Client(b, pipelining))
	}
	clients := newClients(b, n.servers, rlock.Options{}, pipelining)
	for i := range n.locks {
		n.locks[i] = redlock.NewOn("redlock"+strconv.Itoa(i), redlock.Options{FsyncAlways: true}, clients...)
	}
	n.load(b)
	for range n.locks {
		n.lap(b)
		n.floorLap(b, n.smallest)
		n.floorLap(b, ownScripts)
	}
	return n
}

// lap takes and releases one of the locks after the other, so that none meets what a node has not yet released of the last
// lap.
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

// floorLap is the floor. On each node the release follows the answer to the acquire.
func (n *benchNodes) floorLap(b *testing.B, s scripts) {
	const quorum = 3
	n.taken++
	// Keys that no other lap of the last ones had, whatever scripts it used.
	key, owner := "raw"+strconv.Itoa(n.taken%(3*len(n.locks))), "raw:"+strconv.Itoa(n.taken)
	granted, unlock, released := make(chan bool, len(n.raw)), make(chan struct{}), make(chan bool, len(n.raw))
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
