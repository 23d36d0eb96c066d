package redistest

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// sentinelName is what the Sentinel calls the group.
const sentinelName = "group"

// Sentinel is a master and a replica, watched by one Sentinel that fails over by itself, 500 ms after it last heard
// of the master. It belongs to one test.
type Sentinel struct {
	// Nodes are the data servers. The first is the master to begin with.
	Nodes []*Server
	// Watcher is the Sentinel.
	Watcher *Server
}

// StartSentinel starts the three servers, and returns when the Sentinel would find a replica to promote. That takes
// about 2 s. opts apply to the data servers. With the docker backend it needs an engine that can give a container the
// network of this machine.
func StartSentinel(tb testing.TB, opts ...Option) *Sentinel {
	tb.Helper()
	opts = append(opts[:len(opts):len(opts)], WithHostNetwork(), WithArgs("--repl-diskless-sync-delay", "0"))
	master := Start(tb, opts...)
	replica := Start(tb, opts...)
	replica.Do(tb, "REPLICAOF", host, strconv.Itoa(master.port))
	s := &Sentinel{Nodes: []*Server{master, replica}, Watcher: Start(tb, WithHostNetwork(), asSentinel())}

	s.Watcher.Do(tb, "SENTINEL", "MONITOR", sentinelName, host, strconv.Itoa(master.port), "1")
	s.Watcher.Do(tb, "SENTINEL", "SET", sentinelName, "down-after-milliseconds", "500", "failover-timeout", "3000")
	if password := master.settings.password; password != "" {
		for _, node := range s.Nodes {
			node.Do(tb, "CONFIG", "SET", "masterauth", password)
		}
		s.Watcher.Do(tb, "SENTINEL", "SET", sentinelName, "auth-pass", password)
	}
	require.Eventually(tb, s.ready, startTimeout, 20*time.Millisecond, "the Sentinel sees no replica to promote")
	return s
}

// ready tells whether the Sentinel knows the replica and the replica is in step.
func (s *Sentinel) ready() bool {
	reply, err := s.Watcher.Call("SENTINEL", "REPLICAS", sentinelName)
	replicas, _ := reply.([]any)
	if err != nil || len(replicas) != 1 {
		return false
	}
	fields, _ := replicas[0].([]any)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "master-link-status" {
			return fields[i+1] == "ok"
		}
	}
	return false
}

// Client returns a new client that finds the master through the Sentinel, closed in tb's clean-up. The mutators
// change its options before they are used.
func (s *Sentinel) Client(tb testing.TB, mutators ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	option := s.Nodes[0].ClientOption()
	option.InitAddress = []string{s.Watcher.Addr()}
	option.Sentinel.MasterSet = sentinelName
	return newClient(tb, option, mutators)
}

// Master returns the node that the Sentinel takes for the master.
func (s *Sentinel) Master(tb testing.TB) *Server {
	tb.Helper()
	address := s.Watcher.DoStrings(tb, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelName)
	for _, node := range s.Nodes {
		if strconv.Itoa(node.port) == address[1] {
			return node
		}
	}
	require.Fail(tb, "the Sentinel names a master that is none of the nodes", "%v", address)
	return nil
}
