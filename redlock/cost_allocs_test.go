//go:build redis && !race

package redlock_test

import (
	"math"
	"runtime/metrics"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Five nodes are ten calls. There were 24 objects when this was written, also if the last node hung
// or was dead: one more for each call is too many. The workers of the clients stay for the next
// call, so there are no new goroutines. The test is not parallel, because the objects and
// goroutines of all tests count.
func TestUncontendedLockOnFiveNodesCostsAtMost30ObjectsAndNoGoroutine(t *testing.T) {
	for _, of := range []struct {
		last    string
		fail    func(*redistest.Server, testing.TB)
		options redlock.Options
	}{
		{"up", func(*redistest.Server, testing.TB) {}, atOnce},
		{"hung", (*redistest.Server).Pause, hasty},
		{"dead", (*redistest.Server).Kill, hasty},
	} {
		servers := redistest.StartAll(t, 5)
		clients := newClients(t, servers, rlock.Options{}, redistest.OneConnection)
		warm(t, clients)
		l := redlock.NewOn(name, of.options, clients...)
		of.fail(servers[4], t)
		const cycles, most, mostStarted = 10, 30.0, uint64(1)
		objects, started := math.Inf(1), uint64(math.MaxUint64)
		// Now and then other goroutines run, and rueidis dials the dead node. So a try is short, even on
		// a busy machine.
		for try := 0; try < 300 && (objects > most || started > mostStarted); try++ {
			before := goroutinesStarted()
			least := testing.AllocsPerRun(cycles, func() { unlock(t, take(t, l, longLease)) })
			objects, started = min(objects, least), min(started, goroutinesStarted()-before)
		}
		t.Logf("%s: %v objects, %d goroutines in %d cycles", of.last, objects, started,
			cycles)
		require.LessOrEqual(t, objects, most, of.last)
		require.LessOrEqual(t, started, mostStarted, of.last)
	}
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
