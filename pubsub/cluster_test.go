//go:build redis

package pubsub_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

// clusterRoute is a small Route for sharded channels. It remembers the owners of the slots until it
// is told to refresh.
type clusterRoute struct {
	client rueidis.Client
	slot   func(channel string) int

	mu        sync.Mutex
	owners    []owner
	refreshes int
}

type owner struct {
	first, last int
	node        string
}

func (r *clusterRoute) route(
	ctx context.Context, channel string, refresh bool,
) (string, rueidis.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if refresh {
		r.refreshes++
		owners, err := r.ask(ctx)
		if err != nil {
			return "", nil, err
		}
		r.owners = owners
	}
	slot := r.slot(channel)
	for _, o := range r.owners {
		if o.first <= slot && slot <= o.last {
			return o.node, r.client.Nodes()[o.node], nil
		}
	}
	return "", nil, fmt.Errorf("no node serves slot %d", slot)
}

func (r *clusterRoute) ask(ctx context.Context) ([]owner, error) {
	ranges, err := r.client.Do(ctx, r.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return nil, err
	}
	var owners []owner
	for _, message := range ranges {
		parts, err := message.ToArray()
		if err != nil {
			return nil, err
		}
		first, _ := parts[0].AsInt64()
		last, _ := parts[1].AsInt64()
		node, err := parts[2].ToArray()
		if err != nil {
			return nil, err
		}
		host, _ := node[0].ToString()
		port, _ := node[1].AsInt64()
		owners = append(owners, owner{int(first), int(last), fmt.Sprintf("%s:%d", host, port)})
	}
	return owners, nil
}

// shardChannels returns the channels subscribed on a node.
func shardChannels(t testing.TB, s *redistest.Server) []string {
	return s.DoStrings(t, "PUBSUB", "SHARDCHANNELS")
}

func TestShardedChannelsFollowTheirSlots(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	slots := make(map[string]int)
	names := make([]string, 30)
	for i := range names {
		names[i] = fmt.Sprintf("lock__channel:{%d}", i)
		slots[names[i]] = cluster.Slot(t, names[i])
	}
	r := &clusterRoute{
		client: cluster.Client(t),
		slot:   func(channel string) int { return slots[channel] },
		// The route believes that everything is on the first node, so MOVED has to correct it.
		owners: []owner{{0, 16383, cluster.Nodes[0].Addr()}},
	}
	lines := new(logtest.Lines)
	h := pubsub.New(pubsub.Options{Route: r.route, Sharded: true, Linger: 50 * time.Millisecond,
		Logger: lines.Logger()})
	t.Cleanup(h.Close)

	subscriptions := make(map[string]*pubsub.Subscription)
	for _, name := range names {
		subscriptions[name] = h.Subscribe(pubsub.Topic{Channel: name})
	}
	// Before Redis 7 the log says that there are no sharded channels.
	if _, err := cluster.Nodes[0].Call("PUBSUB", "SHARDNUMSUB"); err != nil {
		for name, s := range subscriptions {
			told := func() []string { return lines.With("channel=" + name) }
			require.Eventually(t, func() bool { return len(told()) > 0 }, 10*time.Second,
				5*time.Millisecond, name)
			require.Contains(t, told()[0], "refuses the channel")
			require.Contains(t, told()[0], "unknown command")
			unwoken(t, s)
		}
		return
	}
	where := make(map[*redistest.Server]int)
	for name, s := range subscriptions {
		woken(t, s, 10*time.Second)
		node := cluster.Owner(t, slots[name])
		where[node]++
		require.Contains(t, shardChannels(t, node), name)
		require.EqualValues(t, 1, node.DoInt(t, "SPUBLISH", name, "0"))
		woken(t, s, 5*time.Second)
	}
	require.Len(t, where, 3, "the names are not spread over the nodes")
	require.Equal(t, 3, pubsub.Links(h))

	// A slot moves. Its subscription ends there and is made again on the new node, and its waiter
	// asks again. The others do not notice.
	moving := names[0]
	from := cluster.Owner(t, slots[moving])
	to := cluster.Nodes[0]
	if to == from {
		to = cluster.Nodes[1]
	}
	cluster.MoveSlot(t, slots[moving], from, to)
	woken(t, subscriptions[moving], 10*time.Second)
	require.Contains(t, shardChannels(t, to), moving)
	require.NotContains(t, shardChannels(t, from), moving)
	require.EqualValues(t, 1, to.DoInt(t, "SPUBLISH", moving, "0"))
	woken(t, subscriptions[moving], 5*time.Second)
	for _, name := range names[1:] {
		if slots[name] != slots[moving] {
			unwoken(t, subscriptions[name])
		}
	}

	for _, s := range subscriptions {
		s.Close()
	}
	for _, node := range cluster.Nodes {
		require.Eventually(t, func() bool { return len(shardChannels(t, node)) == 0 },
			5*time.Second, 5*time.Millisecond)
	}

	woken(t, h.Subscribe(pubsub.Topic{Channel: moving}), 5*time.Second)
	h.Close()
	require.Empty(t, shardChannels(t, to), "when Close returns")
}

func TestPlainChannelsWorkThroughAClusterClient(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	h := newHubOf(t, cluster.Client(t))
	var subscriptions []*pubsub.Subscription
	for i := range 10 {
		subscriptions = append(subscriptions, h.Subscribe(pubsub.Topic{Channel: fmt.Sprint(i)}))
	}
	for i, s := range subscriptions {
		woken(t, s, 10*time.Second)
		// the cluster bus carries it to every node
		cluster.Nodes[i%3].Do(t, "PUBLISH", fmt.Sprint(i), "0")
		woken(t, s, 5*time.Second)
	}
	require.Equal(t, 1, pubsub.Links(h))
	h.Close()
	for _, node := range cluster.Nodes {
		require.Empty(t, channels(t, node))
	}
}
