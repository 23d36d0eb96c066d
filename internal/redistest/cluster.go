package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

const slots = 16384

// Cluster is a Redis Cluster that belongs to one test.
type Cluster struct {
	// Nodes are the initial masters. Node i starts with the i-th of len(Nodes) equal ranges of
	// slots.
	Nodes []*Server
	// Replicas are the initial replicas: with n of them for each master, the first n are those of
	// Nodes[0].
	Replicas []*Server

	opts []Option
}

// StartCluster starts servers and joins them to a cluster of as many masters, with all slots spread
// evenly. It returns when each of them reports cluster_state:ok, which takes about 2 s, because no
// node is ready sooner. With [WithReplicas] each master has replicas, which are in sync. opts apply
// to every node. With the docker backend it needs an engine that can give a container the network
// of this machine.
func StartCluster(tb testing.TB, masters int, opts ...Option) *Cluster {
	tb.Helper()
	c := &Cluster{opts: with(opts, AsClusterNode(), WithFastReplicas())}
	replicas := max(0, collect(tb, opts).replicas)
	all := StartAll(tb, masters*(1+replicas), c.opts...)
	c.Nodes, c.Replicas = all[:masters:masters], all[masters:]
	for i, node := range all {
		// Distinct epochs from the start: otherwise the nodes would resolve collisions first, and a
		// MoveSlot meanwhile might be overruled.
		node.Do(tb, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < masters {
			// Servers before Redis 7 do not know ADDSLOTSRANGE.
			add := []string{"CLUSTER", "ADDSLOTS"}
			for slot := i * slots / masters; slot < (i+1)*slots/masters; slot++ {
				add = append(add, strconv.Itoa(slot))
			}
			node.Do(tb, add...)
		}
		// Each node meets each other: this is faster than waiting for gossip.
		for _, peer := range all[:i] {
			node.meet(tb, peer)
		}
	}
	for i, replica := range c.Replicas {
		c.replicate(tb, replica, c.Nodes[i/replicas])
	}
	for _, node := range all {
		meets := time.Now().Add(remeet)
		require.Eventually(tb, func() bool {
			if node.joined(masters) {
				return true
			}
			if time.Now().After(meets) {
				node.meetAgain(all)
				meets = time.Now().Add(remeet)
			}
			return false
		}, startTimeout, 10*time.Millisecond, "cluster node %s is not ready", node.Addr())
	}
	for i, replica := range c.Replicas {
		WaitForReplica(tb, c.Nodes[i/replicas], replica)
	}
	if replicas > 0 {
		c.waitForShards(tb)
	}
	return c
}

// waitForShards waits until all nodes see each replica in the shard of its master. Since Redis 7.2
// and in Valkey they learn this some time after the replica's master. A node killed in between
// cannot read its own file any more.
func (c *Cluster) waitForShards(tb testing.TB) {
	tb.Helper()
	const timeout = "cluster-node-timeout"
	if c.shardsAgree() {
		return
	}
	// Nodes send each other messages at least twice as often.
	usual := c.Nodes[0].DoMap(tb, "CONFIG", "GET", timeout)[timeout]
	for _, node := range c.All() {
		node.Do(tb, "CONFIG", "SET", timeout, "2000")
	}
	require.Eventually(tb, c.shardsAgree, startTimeout, 20*time.Millisecond,
		"the nodes do not agree on their shards")
	for _, node := range c.All() {
		node.Do(tb, "CONFIG", "SET", timeout, usual)
	}
}

// shardsAgree reports whether all nodes see as many shards as there are masters. Servers before
// Redis 7 have no shards.
func (c *Cluster) shardsAgree() bool {
	for _, node := range c.All() {
		reply, err := node.ask("CLUSTER", "SHARDS")
		if shards, _ := reply.([]any); err == nil && len(shards) != len(c.Nodes) {
			return false
		}
	}
	return true
}

// meet introduces the nodes to each other. If they have met before, it tells peer at once what s
// has become, which could take half the node timeout of 15 s.
func (s *Server) meet(tb testing.TB, peer *Server) {
	tb.Helper()
	s.Do(tb, "CLUSTER", "MEET", host, strconv.Itoa(peer.port)) // its bus is at busOffset
}

// remeet is when a handshake that has not ended is taken for lost. On a busy machine some are.
const remeet = 3 * time.Second

// meetAgain introduces the node and the others to each other once more.
func (s *Server) meetAgain(all []*Server) {
	for _, peer := range all {
		if peer != s { // an error shows in what the caller waits for
			_, _ = s.Call("CLUSTER", "MEET", host, strconv.Itoa(peer.port))
			_, _ = peer.Call("CLUSTER", "MEET", host, strconv.Itoa(s.port))
		}
	}
}

// replicate makes a node a replica of master, once it has met it, and tells all nodes.
func (c *Cluster) replicate(tb testing.TB, replica, master *Server) {
	tb.Helper()
	id := master.DoString(tb, "CLUSTER", "MYID")
	require.Eventually(tb, func() bool {
		_, err := replica.Call("CLUSTER", "REPLICATE", id)
		return err == nil
	}, startTimeout, 10*time.Millisecond, "%s never met %s", replica.Addr(), master.Addr())
	for _, node := range c.All() {
		if node != replica {
			replica.meet(tb, node)
		}
	}
}

// joined reports whether the node sees all masters and serves all slots.
func (s *Server) joined(masters int) bool {
	reply, err := s.Call("CLUSTER", "INFO")
	info, _ := reply.(string)
	return err == nil &&
		infoField(info, "cluster_state") == "ok" &&
		infoField(info, "cluster_slots_assigned") == strconv.Itoa(slots) &&
		infoField(info, "cluster_size") == strconv.Itoa(masters)
}

// AddReplica starts a server that copies a master of the cluster, and returns when it is in sync.
// It is the last one of Replicas.
func (c *Cluster) AddReplica(tb testing.TB, master *Server) *Server {
	tb.Helper()
	replica := Start(tb, c.opts...)
	for _, node := range c.All() {
		replica.meet(tb, node)
	}
	c.replicate(tb, replica, master)
	WaitForReplica(tb, master, replica)
	c.Replicas = append(c.Replicas, replica)
	c.waitForShards(tb)
	return replica
}

// All returns Nodes and Replicas.
func (c *Cluster) All() []*Server { return slices.Concat(c.Nodes, c.Replicas) }

// Client returns a new cluster client, closed in tb's clean-up. The mutators
// change its options before they are used.
func (c *Cluster) Client(tb testing.TB, mutators ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	return newClient(tb, c.ClientOption(), mutators)
}

// ClientOption returns the options of a cluster client, with the addresses of all nodes.
func (c *Cluster) ClientOption() rueidis.ClientOption {
	option := c.Nodes[0].ClientOption()
	for _, node := range c.All()[1:] {
		option.InitAddress = append(option.InitAddress, node.Addr())
	}
	return option
}

// Slot returns the slot of key.
func (c *Cluster) Slot(tb testing.TB, key string) int {
	tb.Helper()
	return int(c.witness(tb).DoInt(tb, "CLUSTER", "KEYSLOT", key))
}

// Owner returns the node that serves slot, according to the first node that replies. tb fails when
// there is none.
func (c *Cluster) Owner(tb testing.TB, slot int) *Server {
	tb.Helper()
	owner, err := c.ownerSeenBy(c.witness(tb), slot)
	require.NoError(tb, err)
	require.NotNil(tb, owner, "no node serves slot %d", slot)
	return owner
}

// witness returns the first node that replies. tb fails when there is none.
func (c *Cluster) witness(tb testing.TB) *Server {
	tb.Helper()
	for _, node := range c.All() {
		if node.Replies() {
			return node
		}
	}
	require.Fail(tb, "no node of the cluster replies")
	return nil
}

// ownerSeenBy returns the node that serves slot according to another, or nil.
func (c *Cluster) ownerSeenBy(witness *Server, slot int) (*Server, error) {
	reply, err := witness.Call("CLUSTER", "SLOTS")
	if err != nil {
		return nil, err
	}
	elements, isArray := reply.([]any)
	if !isArray {
		return nil, fmt.Errorf("CLUSTER SLOTS of %s: %v", witness.Addr(), reply)
	}
	for _, element := range elements {
		// The entry is first slot, last slot, [host, port, id, …] of the master and its replicas.
		entry := element.([]any)
		if int64(slot) < entry[0].(int64) || entry[1].(int64) < int64(slot) {
			continue
		}
		for _, node := range c.All() {
			if entry[2].([]any)[1] == int64(node.port) {
				return node, nil
			}
		}
	}
	return nil, nil
}
