//go:build redis

package rlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestReplicatedLockSurvivesAFailoverAndTheNextOneIsMissingAReplica(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	group := redistest.StartSentinel(t, redistest.WithFastReplicas())
	redistest.WaitForReplica(t, group.Nodes[0], group.Nodes[1])
	c := newClientOn(t, group.Client(t), rlock.Options{SyncReplicas: 1, SyncTimeout: enough})
	shortTimeout := newClientOn(t, group.Client(t),
		rlock.Options{SyncReplicas: 1, SyncTimeout: timeout})
	connected := newClientOn(t, group.Client(t),
		rlock.Options{SyncReplicas: rlock.SyncConnected, SyncTimeout: timeout})
	hold := take(t, c.NewFencedLock("order"), longLease)
	require.EqualValues(t, 1, hold.Token())

	master := failOver(t, group)
	require.Equal(t, map[string]string{hold.Owner(): "1"}, master.DoMap(t, "HGETALL", "order"))
	// No replica is left to acknowledge. While the Sentinel's clients move there may be other
	// errors.
	eventually(t, func() bool {
		_, err := shortTimeout.NewLock("another").TryLock(t.Context(), longWait, longLease)
		require.Error(t, err)
		short := new(rlock.ReplicationError)
		return errors.As(err, &short) && short.Got == 0
	}, "acquired without replicas")
	waitUntilFree(t, master, "another")
	eventually(t, func() bool {
		hold, err := connected.NewLock("another").TryLock(t.Context(), longWait, longLease)
		return err == nil && hold.Unlock(t.Context()) == nil
	}, "not acquired although no replica is connected")

	_, err := shortTimeout.NewFencedLock("order").TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired, "taken from its holder")
	unlock(t, hold)
	redistest.StartReplica(t, master)
	next, err := c.NewFencedLock("order").TryLock(t.Context(), longWait, longLease)
	require.NoError(t, err)
	require.EqualValues(t, 2, next.Token())
	unlock(t, next)
}

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
