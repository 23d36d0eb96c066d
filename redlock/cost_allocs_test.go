//go:build redis && !race

package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Five nodes are ten calls. There were 44 objects when this was written: one more for each call is
// too many. The test is not parallel, because the objects of all goroutines count.
func TestUncontendedLockOnFiveNodesCostsAtMost50Objects(t *testing.T) {
	servers := redistest.StartAll(t, 5)
	clients := newClients(t, servers, rlock.Options{}, redistest.OneConnection)
	warm(t, clients)
	l := redlock.NewOn(name, atOnce, clients...)
	least := testing.AllocsPerRun(1, func() { unlock(t, take(t, l, longLease)) })
	for range 5 { // on a busy machine other goroutines run now and then
		least = min(least, testing.AllocsPerRun(100, func() { unlock(t, take(t, l, longLease)) }))
	}
	t.Logf("%v objects", least)
	require.LessOrEqual(t, least, 50.0)
}
