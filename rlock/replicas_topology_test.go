//go:build redis

package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestReplicatedLockFollowsASlotThatMovesAndHasMoved(t *testing.T) {
	t.Parallel()
	const timeout = 20 * time.Millisecond
	cluster := redistest.StartCluster(t, 3, redistest.WithFastReplicas())
	from, to := cluster.Nodes[0], cluster.Nodes[1]
	replica := cluster.AddReplica(t, to)
	name := oneLockPerNode(t, cluster)[from]
	slot := cluster.Slot(t, name)
	shortTimeout := newClientOn(t, cluster.Client(t),
		rlock.Options{SyncReplicas: 1, SyncTimeout: timeout})
	longTimeout := newClientOn(t, cluster.Client(t),
		rlock.Options{SyncReplicas: 1, SyncTimeout: enough})
	// bothWays acquires and releases the lock, without and with a wait.
	bothWays := func(when string, c *rlock.Client, judge func(*testing.T, *rlock.Hold, error)) {
		onEveryKind(t, func(t *testing.T, k kind) {
			if when == "moving" && k.name != "reentrant" {
				return // has several keys, which Redis refuses until it knows where all of them are
			}
			for _, wait := range []time.Duration{rlock.NoWait, longWait} {
				hold, err := k.lock(c, name).TryLock(t.Context(), wait, longLease)
				judge(t, hold, err)
				if hold != nil {
					unlock(t, hold)
				}
				for _, node := range cluster.Nodes {
					require.Empty(t, node.DoStrings(t, "KEYS", name), when)
				}
			}
		})
	}
	missed := func(t *testing.T, _ *rlock.Hold, err error) { shortfall(t, err, 1, 0, timeout) }
	acknowledged := func(t *testing.T, _ *rlock.Hold, err error) {
		require.NoError(t, err)
		require.Equal(t, []string{name}, to.DoStrings(t, "KEYS", name)) // which asks only this node
	}
	connected := func() *rlock.Client {
		return newClientOn(t, cluster.Client(t),
			rlock.Options{SyncReplicas: rlock.SyncConnected, SyncTimeout: timeout})
	}
	granted := func(t *testing.T, _ *rlock.Hold, err error) { require.NoError(t, err) }
	bothWays("before", shortTimeout, missed)
	bothWays("before", connected(), granted)
	cluster.BeginMove(t, slot, from, to)
	bothWays("moving", longTimeout, acknowledged)
	cluster.FinishMove(t, slot, from, to)
	bothWays("moved", longTimeout, acknowledged)
	later := connected()
	bothWays("moved", later, granted)
	replica.Pause(t)
	bothWays("without the replica", shortTimeout, missed)
	bothWays("without the replica", later, missed)
}
