//go:build redis

package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/lua"
	"holdfast/rlock"
)

func TestClusterWakesThroughShardedChannelsUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	type channels struct {
		mode             rlock.PubSubMode
		sharded          bool
		publish, another string
	}
	cases := []channels{
		{rlock.PubSubAuto, true, "spublish", "publish"},
		{rlock.PubSubSharded, true, "spublish", "publish"},
		{rlock.PubSubClassic, false, "publish", "spublish"},
	}
	if !knowsSharded(t, cluster) {
		cases = []channels{
			{rlock.PubSubAuto, false, "publish", "spublish"},
			{rlock.PubSubClassic, false, "publish", "spublish"},
		}
	}
	for _, c := range cases {
		t.Run(fmt.Sprint("mode ", c.mode), func(t *testing.T) {
			client := newClientOn(t, cluster.Client(t), rlock.Options{PubSub: c.mode})
			other := newClientOn(t, cluster.Client(t), rlock.Options{PubSub: c.mode})
			for node, name := range oneLockPerNode(t, cluster) {
				for _, k := range contests() {
					name := fmt.Sprint("{", name, "}", c.mode, k.name)
					hold := take(t, k.contender(client, name), time.Minute)
					waiter := lockInBackground(t.Context(), k.lock(other, name), time.Minute)
					where := cluster.Nodes // any node serves a classic channel
					if c.sharded {
						where = []*redistest.Server{node}
					}
					k.waitForListener(t, where, c.sharded, name)
					node.ResetStats(t)
					start := time.Now()
					unlock(t, hold)
					unlock(t, acquired(t, waiter))
					require.Less(t, time.Since(start), 3*time.Second, "%s: not woken", k.name)
					stats := node.CommandStats(t)
					require.Positive(t, stats[c.publish], k.name)
					require.Zero(t, stats[c.another], k.name)
				}
			}
		})
	}
}

// waitForListener waits until a client listens on the channels of a lock, on any node of a cluster.
func (k kind) waitForListener(t testing.TB, nodes []*redistest.Server, sharded bool, name string) {
	t.Helper()
	prefix := ""
	if sharded {
		prefix = "SHARD"
	}
	eventually(t, func() bool {
		n := 0
		for _, node := range nodes {
			reply, err := node.Call("PUBSUB", prefix+"CHANNELS", lua.Prefix(k.channel, name)+"*")
			channels, _ := reply.([]any)
			if err != nil || len(channels) == 0 {
				continue
			}
			for _, channel := range channels {
				n += max(0, subscribed(node, prefix+"NUMSUB", channel.(string)))
			}
		}
		return n == 1
	}, "one listener for "+name)
}

func TestDeadNodeCostsItsOwnLocksOnly(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // renewals on all nodes wait a sixth of it for the dead one
	// The other nodes continue without it.
	cluster := redistest.StartCluster(t, 3,
		redistest.WithArgs("--cluster-require-full-coverage", "no"))
	client := newClientOn(t, cluster.Client(t),
		rlock.Options{WatchdogLease: lease, CommandTimeout: 5 * time.Second})
	holds := make(map[*redistest.Server][]*rlock.Hold)
	for node, name := range oneLockPerNode(t, cluster) {
		for _, k := range kinds {
			holds[node] = append(holds[node],
				take(t, k.lock(client, "{"+name+"}"+k.name), rlock.Watchdog))
		}
	}
	dead := cluster.Nodes[2]
	doomed := holds[dead]
	delete(holds, dead)
	var others []*rlock.Hold
	for _, kept := range holds {
		others = append(others, kept...)
	}
	dead.Kill(t)

	ended := make([]<-chan time.Time, len(doomed))
	for i, hold := range doomed {
		ended[i] = endedAt(hold)
	}
	for i, hold := range doomed {
		late := receive(t, ended[i], "the lock of a dead node was not lost").Sub(hold.Deadline())
		require.ErrorIs(t, hold.Err(), rlock.ErrLost)
		require.GreaterOrEqual(t, late, time.Duration(0), "before its deadline")
		require.Less(t, late, promptly)
		require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	}
	requireKept(t, others, 3*lease/2, "a lock of another node was lost")

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := client.NewLock(doomed[0].Name()).Lock(ctx, lease)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 3*time.Second) // not for the CommandTimeout
	for _, hold := range others {
		unlock(t, hold)
	}
}

func TestUnservedSlotIsWaitedFor(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 2,
		redistest.WithArgs("--cluster-require-full-coverage", "no"))
	client := newClientOn(t, cluster.Client(t), rlock.Options{})
	slot := fmt.Sprint(cluster.Slot(t, "{job}"))
	node := nodeOf(t, cluster, "{job}")
	for _, s := range cluster.Nodes {
		s.Do(t, "CLUSTER", "DELSLOTS", slot)
	}

	var waiters []<-chan outcome
	for _, k := range kinds {
		_, err := k.lock(client, "{job}"+k.name).TryLock(t.Context(), rlock.NoWait, time.Second)
		requireRefusal(t, err, "CLUSTERDOWN")
		waiters = append(waiters,
			lockInBackground(t.Context(), k.lock(client, "{job}"+k.name), time.Minute))
	}
	require.Never(t, func() bool {
		return slices.ContainsFunc(waiters,
			func(waiter <-chan outcome) bool { return len(waiter) > 0 })
	}, 200*time.Millisecond, 10*time.Millisecond)
	node.Do(t, "CLUSTER", "ADDSLOTS", slot)
	for _, waiter := range waiters {
		unlock(t, acquired(t, waiter))
	}
}

// Redisson before 3.28 may listen on the classic channel only.
func TestListenerOnAClassicChannelIsWokenAndLoggedOnce(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	if !knowsSharded(t, cluster) {
		return // all channels are classic
	}
	var log logtest.Lines
	client := newClientOn(t, cluster.Client(t), rlock.Options{Logger: log.Logger()})
	node := nodeOf(t, cluster, "x")
	option := node.ClientOption()
	option.ForceSingleClient = true
	listener, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(listener.Close)
	heard := make(chan string, 10)
	channel := lua.Channel("x")
	go func() {
		_ = listener.Receive(t.Context(), listener.B().Subscribe().Channel(channel).Build(),
			func(m rueidis.PubSubMessage) { heard <- m.Message })
	}()
	eventually(t, func() bool { return subscribed(node, "NUMSUB", channel) == 1 }, "no listener")

	for range 2 {
		unlock(t, take(t, client.NewLock("x"), time.Minute))
		require.Equal(t, lua.Unlocked, locktest.Receive(t, heard, "not woken"))
	}
	closeClient(t, client)
	require.Len(t, log.With("another client waits on a classic channel"), 1)
}
