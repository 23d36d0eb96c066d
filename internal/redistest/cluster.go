package redistest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

const slots = 16384

// Cluster is a Redis Cluster of masters without replicas that belongs to one
// test.
type Cluster struct {
	// Nodes are the masters. Node i starts with the i-th of len(Nodes) equal
	// ranges of slots.
	Nodes []*Server
}

// StartCluster starts masters servers, joins them to a cluster that has all slots
// spread evenly, and returns when each of them reports cluster_state:ok. That
// takes about 2 s, because a cluster node refuses to be ready any sooner. opts
// apply to every node. It needs Redis 7 or newer, and with the docker backend an
// engine that can give a container the network of this machine.
func StartCluster(tb testing.TB, masters int, opts ...Option) *Cluster {
	tb.Helper()
	c := &Cluster{}
	for range masters {
		bus, err := freePort()
		require.NoError(tb, err)
		c.Nodes = append(c.Nodes, Start(tb, append(opts[:len(opts):len(opts)],
			WithHostNetwork(),
			WithArgs("--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-announce-ip", host))...))
	}
	for i, node := range c.Nodes {
		// Distinct epochs from the start: else the nodes would settle collisions
		// first, and a MoveSlot in that time might be overruled.
		node.Do(tb, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		first, last := i*slots/masters, (i+1)*slots/masters-1
		node.Do(tb, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last))
		// Everybody meets everybody: faster than to wait for gossip.
		for _, peer := range c.Nodes[:i] {
			bus := peer.DoMap(tb, "CONFIG", "GET", "cluster-port")["cluster-port"]
			node.Do(tb, "CLUSTER", "MEET", host, strconv.Itoa(peer.port), bus)
		}
	}
	for _, node := range c.Nodes {
		require.Eventually(tb, func() bool { return node.joined(masters) }, startTimeout, 10*time.Millisecond,
			"cluster node %s is not ready", node.Addr())
	}
	return c
}

// joined tells whether the node sees all nodes and serves all slots.
func (s *Server) joined(masters int) bool {
	reply, err := s.Call("CLUSTER", "INFO")
	info, _ := reply.(string)
	return err == nil &&
		infoField(info, "cluster_state") == "ok" &&
		infoField(info, "cluster_slots_assigned") == strconv.Itoa(slots) &&
		infoField(info, "cluster_size") == strconv.Itoa(masters)
}

// Client returns a new cluster client, closed in tb's clean-up. The mutators
// change its options before they are used.
func (c *Cluster) Client(tb testing.TB, mutators ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	option := c.Nodes[0].ClientOption()
	for _, node := range c.Nodes[1:] {
		option.InitAddress = append(option.InitAddress, node.Addr())
	}
	return newClient(tb, option, mutators)
}

// Slot returns the slot of key.
func (c *Cluster) Slot(tb testing.TB, key string) int {
	tb.Helper()
	return int(c.Nodes[0].DoInt(tb, "CLUSTER", "KEYSLOT", key))
}

// Owner returns the node that serves slot in the eyes of the first node. tb
// fails when there is none.
func (c *Cluster) Owner(tb testing.TB, slot int) *Server {
	tb.Helper()
	for _, element := range as[[]any](tb, c.Nodes[0].Do(tb, "CLUSTER", "SLOTS"), []string{"CLUSTER", "SLOTS"}) {
		entry := element.([]any) // first slot, last slot, [host, port, id, …]
		if int64(slot) < entry[0].(int64) || entry[1].(int64) < int64(slot) {
			continue
		}
		for _, node := range c.Nodes {
			if entry[2].([]any)[1] == int64(node.port) {
				return node
			}
		}
	}
	require.Fail(tb, fmt.Sprintf("nobody serves slot %d", slot))
	return nil
}
