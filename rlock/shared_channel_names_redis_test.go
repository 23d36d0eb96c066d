//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestNameWhoseKeysWouldNotShareASlotIsRefusedOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := newClientOn(t, cluster.Client(t), rlock.Options{})
	for _, n := range names {
		if n.oneSlot {
			s := cluster.Owner(t, cluster.Slot(t, n.name))
			require.Same(t, s, cluster.Owner(t, cluster.Slot(t, n.channel)))
			nodes, numsub := []*redistest.Server{s}, "SHARDNUMSUB"
			if !knowsSharded(t, cluster) {
				nodes, numsub = cluster.Nodes, "NUMSUB" // any node serves a classic channel
			}
			requireName(t, s, c, n.name, n.channel, nodes, numsub)
			continue
		}
		var monitors []*redistest.Monitor
		for _, node := range cluster.Nodes {
			monitors = append(monitors, node.Monitor(t))
		}
		lock := c.NewLock(n.name)
		_, locked := lock.Lock(t.Context(), time.Second)
		_, tried := lock.TryLock(t.Context(), rlock.NoWait, time.Second)
		_, forced := lock.ForceUnlock(t.Context())
		_, looked := lock.Info(t.Context())
		for _, err := range []error{locked, tried, forced, looked} {
			require.ErrorIs(t, err, rlock.ErrInvalid)
			require.ErrorContains(t, err, "slot")
			require.ErrorContains(t, err, "use a name without braces")
		}
		for _, monitor := range monitors {
			for _, command := range monitor.Commands(t) {
				require.NotContains(t, command, n.name)
			}
		}
	}
}
