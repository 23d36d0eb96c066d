//go:build redis && !race

package rlock_test

import (
	"context"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// A cycle of Lock and Unlock costs this many objects and bytes of memory. The race detector
// allocates more. What else the process does is counted, too: now and then an object of rueidis,
// and whatever runs in the background, such as the proxy of onekey64-1ms. So the best of several
// runs counts. With contention, the order in which goroutines run decides who asks the server, so
// these bounds are well above the usual figures.
func TestCycleAllocatesFewObjects(t *testing.T) {
	one, cluster := []*redistest.Server{redistest.Start(t)}, redistest.StartCluster(t, 3)
	far := faultproxy.Start(t, one[0].Addr())
	far.Delay(time.Millisecond)
	single := func() rueidis.Client { return one[0].Client(t) }
	for _, of := range []struct {
		name                          string
		servers                       []*redistest.Server
		redis                         func() rueidis.Client
		processes, goroutines, cycles int
		oneKey                        bool
		objects, bytes                float64
	}{
		{"uncontended", one, single, 1, 1, 5000, false, 2.5, 900},
		{"keys64", one, single, 1, 64, 500, false, 2.5, 900},
		{"cluster", cluster.Nodes, func() rueidis.Client { return cluster.Client(t) },
			1, 64, 500, false, 2.5, 900},
		{"onekey64", one, single, 1, 64, 500, true, 4.5, 1500},
		{"onekey64-1ms", one, func() rueidis.Client { return one[0].Client(t, through(far)) },
			1, 64, 100, true, 8, 1800},
		{"processes64", one, single, 64, 1, 20, true, 60, 5500},
		{"processes4x16", one, single, 4, 16, 100, true, 8, 2000},
		{"handover", one, single, 2, 1, 1000, true, 45, 4500},
	} {
		t.Run(of.name, func(t *testing.T) {
			var locks []*rlock.Lock
			for range of.processes {
				c := newClientOn(t, of.redis(), anonymous)
				for range of.goroutines {
					name := of.name
					if !of.oneKey {
						name += strconv.Itoa(len(locks))
					}
					locks = append(locks, c.NewLock(name))
				}
			}
			cycles := func(n int) {
				var work sync.WaitGroup
				for _, lock := range locks {
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
			objects, bytes, n := math.Inf(1), math.Inf(1), float64(of.cycles*len(locks))
			for try := 0; try < 10 && (objects >= of.objects || bytes >= of.bytes); try++ {
				for _, s := range of.servers {
					s.ResetStats(t)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				cycles(of.cycles)
				runtime.ReadMemStats(&after)
				objects = min(objects, float64(after.Mallocs-before.Mallocs)/n)
				bytes = min(bytes, float64(after.TotalAlloc-before.TotalAlloc)/n)
			}
			scripts := 0
			for _, s := range of.servers {
				scripts += s.CommandStats(t)["evalsha"]
			}
			t.Logf("%.2f objects, %.0f bytes, %.2f scripts", objects, bytes,
				float64(scripts)/n)
			require.Less(t, objects, of.objects)
			require.Less(t, bytes, of.bytes)
			if !of.oneKey { // of the others: TestTrafficOfEachScenario
				require.InEpsilon(t, 2*n, scripts, 0.01) // a renewal may come in between
			}
		})
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

// live returns the bytes of heap and stacks in use.
func live() int64 {
	for range 3 { // each collection shrinks a mostly empty stack once
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // less than 8 EiB
}

// blocked returns how many goroutines of this process are blocked. Go 1.25 does not say that.
func blocked() (n int, known bool) {
	sample := []metrics.Sample{{Name: "/sched/goroutines/waiting:goroutines"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0, false
	}
	return int(sample[0].Value.Uint64()), true //nolint:gosec // fewer than 2^63
}

// With the stack of a waiter, which is 4 or 8 KiB. No other goroutine runs for a hold or a waiter.
func TestHoldAndWaiterCostLittleMemory(t *testing.T) {
	s := redistest.Start(t)
	holder, c := newClient(t, s, anonymous), newClient(t, s, anonymous)
	const n = 2000
	hold := func(name string) { take(t, holder.NewLock(name), longLease) }
	ctx, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer leave()
	wait := func(name string) {
		waiting.Go(func() { _, _ = c.NewLock(name).Lock(ctx, rlock.Watchdog) })
	}
	for _, of := range []struct {
		what       string
		start      func(i int)
		asks       int // how often each asks the server
		most       int64
		goroutines int
	}{
		{"hold", func(i int) { hold("lock:" + strconv.Itoa(i)) }, 1, 3000, 0},
		{"waiter of one lock", func(int) { wait("lock:0") }, 0, 10_000, n},
		{"waiter of a lock each", func(i int) { wait("lock:" + strconv.Itoa(i)) }, 2, 20_000, n},
	} {
		before, sent, running := live(), calls(s, "evalsha"), runtime.NumGoroutine()
		for i := range n {
			of.start(i)
		}
		eventually(t, func() bool { return calls(s, "evalsha") >= sent+of.asks*(n-1) }, of.what)
		eventually(t, func() bool {
			asleep, known := blocked()
			return !known || asleep >= running+of.goroutines-n/50
		}, "they sleep")
		var each int64
		eventually(t, func() bool { each = (live() - before) / n; return each < of.most },
			"little memory of a "+of.what)
		eventually(t, func() bool { return runtime.NumGoroutine() < running+of.goroutines+n/50 },
			"few goroutines of a "+of.what)
		t.Logf("%s: %d bytes", of.what, each)
	}
}

// What the packages of this module do before main. GODEBUG=inittrace=1 prints a line for each
// package with something to do, such as
//
//	init holdfast/lua @0.51 ms, 0.007 ms clock, 2048 bytes, 12 allocs
func TestStartUpCostsLittleMemory(t *testing.T) {
	self := exec.Command(os.Args[0], "-test.run=^$")
	self.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := self.CombinedOutput()
	require.NoError(t, err)
	inits := regexp.MustCompile(`(?m)^init (holdfast/\S+) .* (\d+) bytes, (\d+) allocs$`)
	ofTests := regexp.MustCompile(`_test$|locktest|/(multilock|redlock)$|` +
		`internal/(fakeredis|faultproxy|faults|inprocess|luashim|redistest|suite)$`)
	objects, bytes := 0, 0
	for _, line := range inits.FindAllStringSubmatch(string(trace), -1) {
		if !ofTests.MatchString(line[1]) {
			b, _ := strconv.Atoi(line[2])
			o, _ := strconv.Atoi(line[3])
			t.Logf("%s: %d objects, %d bytes", line[1], o, b)
			objects, bytes = objects+o, bytes+b
		}
	}
	t.Logf("%d objects, %d bytes", objects, bytes)
	require.Positive(t, objects, "the format of inittrace has changed")
	require.Less(t, objects, 1000)
	require.Less(t, bytes, 120_000)
}
