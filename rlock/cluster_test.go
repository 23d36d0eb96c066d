package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// nodeOf is the node of a cluster that serves a lock.
func nodeOf(t testing.TB, c *redistest.Cluster, lock string) *redistest.Server {
	t.Helper()
	return c.Owner(t, c.Slot(t, lock))
}

// oneLockPerNode are names, each served by another node.
func oneLockPerNode(t testing.TB, c *redistest.Cluster) map[*redistest.Server]string {
	t.Helper()
	found := make(map[*redistest.Server]string)
	for i := 0; len(found) < len(c.Nodes); i++ {
		name := fmt.Sprint("lock-", i)
		found[nodeOf(t, c, name)] = name
	}
	return found
}

func TestLocksWorkOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	for name, variant := range variants {
		if name == "ForceSingleClient" {
			continue // knows one node
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireAllBasics(t, func() rueidis.Client { return cluster.Client(t, variant) }, true)
		})
	}
	t.Run("wrapped", func(t *testing.T) {
		t.Parallel()
		requireAllBasics(t, func() rueidis.Client { return wrapped{cluster.Client(t)} }, true)
	})
}

func TestClusterWakesThroughShardedChannelsUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	for _, c := range []struct {
		mode                     rlock.PubSubMode
		numsub, publish, another string
	}{
		{rlock.PubSubAuto, "SHARDNUMSUB", "spublish", "publish"},
		{rlock.PubSubSharded, "SHARDNUMSUB", "spublish", "publish"},
		{rlock.PubSubClassic, "NUMSUB", "publish", "spublish"},
	} {
		t.Run(fmt.Sprint("mode ", c.mode), func(t *testing.T) {
			client := newClientOn(t, cluster.Client(t), rlock.Options{PubSub: c.mode})
			for node, name := range oneLockPerNode(t, cluster) {
				hold := take(t, client.NewLock(name), time.Minute)
				waiter := lockInBackground(t.Context(), client.NewLock(name), time.Minute)
				eventually(t, func() bool {
					n := 0
					for _, s := range cluster.Nodes {
						if s == node || c.numsub == "NUMSUB" { // any node serves a classic channel
							n += max(0, listening(s, c.numsub, name))
						}
					}
					return n == 1
				}, "nobody listens")
				node.ResetStats(t)
				start := time.Now()
				unlock(t, hold)
				unlock(t, acquired(t, waiter))
				require.Less(t, time.Since(start), 3*time.Second, "not woken")
				stats := node.CommandStats(t)
				require.Equal(t, 2, stats[c.publish])
				require.Zero(t, stats[c.another])
			}
		})
	}
}

func TestClusterKeepsManyLocksOverAllSlots(t *testing.T) {
	t.Parallel()
	const (
		locks = 200
		lease = time.Second
	)
	cluster := redistest.StartCluster(t, 3)
	client := newClientOn(t, cluster.Client(t), rlock.Options{WatchdogLease: lease})
	var holds []*rlock.Hold
	for i := range locks {
		holds = append(holds, take(t, client.NewLock(fmt.Sprint("spread-", i)), rlock.Watchdog))
	}
	// As many again in one slot: they cost one command for a hundred.
	for i := range locks {
		holds = append(holds, take(t, client.NewLock(fmt.Sprint("{one slot}-", i)), rlock.Watchdog))
	}
	for _, node := range cluster.Nodes {
		node.ResetStats(t)
	}
	start := time.Now()
	require.Never(t, func() bool {
		for _, h := range holds {
			if !h.Valid() {
				return true
			}
		}
		return false
	}, 3*lease, lease/10, "a lock was lost")
	calls, keys := 0, 0
	for _, node := range cluster.Nodes {
		stats := node.CommandStats(t)
		calls += stats["evalsha"] + stats["eval"]
		keys += stats["hexists"]
	}
	rounds := float64(time.Since(start)) / float64(lease/3) / 0.9 // the period is jittered by a tenth
	require.GreaterOrEqual(t, keys, 2*2*locks, "too few renewals")
	// Per round: one for each of the 200 slots, and two to four for the slot of the other 200, which one tick may cut.
	require.LessOrEqual(t, float64(calls), (rounds+1)*(locks+4))
	for _, h := range holds {
		unlock(t, h)
	}
	for _, node := range cluster.Nodes {
		require.Zero(t, node.DoInt(t, "DBSIZE"))
	}
}

func TestDeadNodeCostsItsOwnLocksOnly(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	// The other nodes go on without it.
	cluster := redistest.StartCluster(t, 3, redistest.WithArgs("--cluster-require-full-coverage", "no"))
	client := newClientOn(t, cluster.Client(t), rlock.Options{WatchdogLease: lease, CommandTimeout: time.Second})
	holds := make(map[*redistest.Server]*rlock.Hold)
	for node, name := range oneLockPerNode(t, cluster) {
		holds[node] = take(t, client.NewLock(name), rlock.Watchdog)
	}
	dead := cluster.Nodes[2]
	doomed := holds[dead]
	delete(holds, dead)
	dead.Kill(t)

	receive(t, doomed.Done(), "the lock of a dead node was not lost")
	late := time.Since(doomed.Deadline())
	require.ErrorIs(t, doomed.Err(), rlock.ErrLost)
	require.GreaterOrEqual(t, late, time.Duration(0), "before its deadline")
	require.Less(t, late, 100*time.Millisecond)
	require.ErrorIs(t, doomed.Unlock(t.Context()), rlock.ErrLost)
	require.Never(t, func() bool {
		for _, h := range holds {
			if !h.Valid() {
				return true
			}
		}
		return false
	}, 3*lease, lease/10, "a lock of another node was lost")

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := client.NewLock(doomed.Name()).Lock(ctx, lease)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 500*time.Millisecond)
	for _, h := range holds {
		unlock(t, h)
	}
}

func TestSlotThatNobodyServesIsWaitedFor(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2, redistest.WithArgs("--cluster-require-full-coverage", "no"))
	lock := newClientOn(t, cluster.Client(t), rlock.Options{}).NewLock("job")
	slot := fmt.Sprint(cluster.Slot(t, lock.Name()))
	node := nodeOf(t, cluster, lock.Name())
	for _, s := range cluster.Nodes {
		s.Do(t, "CLUSTER", "DELSLOTS", slot)
	}

	_, err := lock.TryLock(t.Context(), rlock.NoWait, time.Second)
	requireRefusal(t, err, "CLUSTERDOWN")
	waiter := lockInBackground(t.Context(), lock, time.Second)
	require.Never(t, func() bool { return len(waiter) > 0 }, 200*time.Millisecond, 10*time.Millisecond)
	node.Do(t, "CLUSTER", "ADDSLOTS", slot)
	unlock(t, acquired(t, waiter))
}

func TestSlotThatNobodyServesCostsItsOwnLocksOnly(t *testing.T) {
	t.Parallel()
	const lease = 600 * time.Millisecond
	cluster := redistest.StartCluster(t, 2, redistest.WithArgs("--cluster-require-full-coverage", "no"))
	client := newClientOn(t, cluster.Client(t), rlock.Options{WatchdogLease: lease})
	doomed := take(t, client.NewLock("job"), rlock.Watchdog)
	node := nodeOf(t, cluster, "job")
	var kept []*rlock.Hold // renewed in the same batch
	for i := 0; len(kept) < 3; i++ {
		if name := fmt.Sprint("neighbour-", i); nodeOf(t, cluster, name) == node {
			kept = append(kept, take(t, client.NewLock(name), rlock.Watchdog))
		}
	}
	for _, s := range cluster.Nodes {
		s.Do(t, "CLUSTER", "DELSLOTS", fmt.Sprint(cluster.Slot(t, "job")))
	}

	receive(t, doomed.Done(), "a lock in a slot that nobody serves was not lost")
	require.ErrorIs(t, doomed.Err(), rlock.ErrLost)
	require.Never(t, func() bool {
		for _, h := range kept {
			if !h.Valid() {
				return true
			}
		}
		return false
	}, 2*lease, lease/10, "a lock in another slot was lost")
	for _, h := range kept {
		unlock(t, h)
	}
}
