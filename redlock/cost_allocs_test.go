//go:build redis && !race

package redlock_test

import (
	"runtime/metrics"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Five nodes are ten calls. There were 24 objects when this was written: one more for each call is
// too many. The workers of the clients stay for the next call, so there are no new goroutines. The
// test is not parallel, because the objects and goroutines of all tests count.
func TestUncontendedLockOnFiveNodesCostsAtMost30ObjectsAndNoGoroutine(t *testing.T) {
	servers := redistest.StartAll(t, 5)
	clients := newClients(t, servers, rlock.Options{}, redistest.OneConnection)
	warm(t, clients)
	l := redlock.NewOn(name, atOnce, clients...)
	const cycles = 100
	objects := testing.AllocsPerRun(1, func() { unlock(t, take(t, l, longLease)) })
	started := uint64(cycles)
	for range 5 { // on a busy machine other goroutines run now and then
		before := goroutinesStarted()
		least := testing.AllocsPerRun(cycles, func() { unlock(t, take(t, l, longLease)) })
		objects, started = min(objects, least), min(started, goroutinesStarted()-before)
	}
	t.Logf("%v objects, %d goroutines in %d cycles", objects, started, cycles)
	require.LessOrEqual(t, objects, 30.0)
	require.LessOrEqual(t, started, uint64(cycles/10))
}

// goroutinesStarted returns how many goroutines this process has started so far; 0 before Go 1.26.
func goroutinesStarted() uint64 {
	sample := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
