package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// sentinelName is the Sentinels' name of the group.
const sentinelName = "group"

// downAfter is how many milliseconds a server is silent before a Sentinel takes it for dead: few,
// because tests wait for it, but a new master on a busy machine was silent for more than 500.
const downAfter = "1500"

// Sentinel is a master and its replicas, watched by Sentinels. They fail over by themselves when
// they have not heard from the master for 1.5 s. It belongs to one test.
type Sentinel struct {
	// Nodes are the data servers. The first one is the initial master.
	Nodes []*Server
	// Watchers are the Sentinels.
	Watchers []*Server
	// Watcher is the first of them.
	Watcher *Server
}

// StartSentinel starts a master with a replica ([WithReplicas]) and a Sentinel ([WithWatchers]),
// and returns when each Sentinel knows the others and would find a replica to promote. That takes
// about 2 s. opts apply to the data servers, WithTLS also to the Sentinels. With the docker backend
// it needs an engine that can give a container the network of this machine.
func StartSentinel(tb testing.TB, opts ...Option) *Sentinel {
	tb.Helper()
	shape := collect(tb, opts)
	replicas, watchers := 1, max(1, shape.watchers)
	if shape.replicas >= 0 {
		replicas = shape.replicas
	}
	s := &Sentinel{
		Nodes:    StartAll(tb, 1+replicas, with(opts, WithHostNetwork(), WithFastReplicas())...),
		Watchers: StartAll(tb, watchers, WithHostNetwork(), asSentinel(shape)),
	}
	s.Watcher = s.Watchers[0]
	master := strconv.Itoa(s.Nodes[0].port)
	for _, replica := range s.Nodes[1:] {
		replica.Do(tb, "REPLICAOF", host, master)
	}
	for _, replica := range s.Nodes[1:] {
		WaitForReplica(tb, s.Nodes[0], replica)
	}
	for _, watcher := range s.Watchers {
		watcher.hurry()
		watcher.Do(tb, "SENTINEL", "MONITOR", sentinelName, host, master,
			strconv.Itoa(watchers/2+1))
		watcher.Do(tb, "SENTINEL", "SET", sentinelName, "down-after-milliseconds", downAfter,
			"failover-timeout", "3000")
		if shape.password != "" {
			watcher.Do(tb, "SENTINEL", "SET", sentinelName, "auth-pass", shape.password)
		}
	}
	for _, watcher := range s.Watchers {
		require.Eventually(tb, func() bool { return s.ready(watcher) }, startTimeout,
			20*time.Millisecond,
			"the Sentinel %s does not know all others", watcher.Addr())
	}
	return s
}

// hurry makes a Sentinel check its servers and announce itself more often than every 10 s and every
// 2 s, which is how it learns of replicas and other Sentinels. It also makes it retry a lost
// connection sooner, once in each ping period: with 1 s, the default, the Sentinel might take a new
// master for down right after the promotion, and replace it, too. With 200 ms it might promote
// nobody: it promotes a replica only if the last INFO is younger than five ping periods, and asks
// one that has lost its master only once a second. A Sentinel that stood still for two seconds
// trusts itself again after two more, not thirty, which is the limit of a wait for a failover.
// Sentinels before Redis 7 cannot be hurried.
func (s *Server) hurry() {
	_, _ = s.Call("SENTINEL", "DEBUG", "INFO-PERIOD", "200", "PUBLISH-PERIOD", "200", "PING-PERIOD",
		"500", "TILT-PERIOD", "2000")
}

// ready reports whether a Sentinel knows the replicas, in sync, and the other Sentinels.
func (s *Sentinel) ready(watcher *Server) bool {
	replicas, err := watcher.sentinelList("REPLICAS")
	if err != nil || len(replicas) < len(s.Nodes)-1 {
		return false
	}
	for _, replica := range replicas {
		if replica["master-link-status"] != "ok" || strings.Contains(replica["flags"], "down") {
			return false
		}
	}
	others, err := watcher.sentinelList("SENTINELS")
	return err == nil && len(others) == len(s.Watchers)-1 &&
		!slices.ContainsFunc(others, func(other map[string]string) bool {
			return strings.Contains(other["flags"], "down")
		})
}

// sentinelList returns a Sentinel's reply to REPLICAS or SENTINELS.
func (s *Server) sentinelList(what string) ([]map[string]string, error) {
	reply, err := s.ask("SENTINEL", what, sentinelName)
	if err != nil {
		return nil, err
	}
	elements, _ := reply.([]any)
	list := make([]map[string]string, len(elements))
	for i, element := range elements {
		list[i] = map[string]string{}
		fields, _ := element.([]any)
		for j := 0; j+1 < len(fields); j += 2 {
			name, _ := fields[j].(string)
			list[i][name], _ = fields[j+1].(string)
		}
	}
	return list, nil
}

// Client returns a new client that finds the master through the Sentinels, closed in tb's clean-up.
// The mutators change its options before they are used.
func (s *Sentinel) Client(tb testing.TB, mutators ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	return newClient(tb, s.ClientOption(), mutators)
}

// ClientOption returns the options of a client that finds the master through the Sentinels.
func (s *Sentinel) ClientOption() rueidis.ClientOption {
	option := s.Nodes[0].ClientOption()
	option.InitAddress = nil
	for _, watcher := range s.Watchers {
		option.InitAddress = append(option.InitAddress, watcher.Addr())
	}
	option.Sentinel.MasterSet = sentinelName
	option.Sentinel.TLSConfig = s.Watcher.TLSConfig()
	option.Sentinel.Dialer = option.Dialer
	return option
}

// Master returns the node that is the master according to the first Sentinel that replies and names
// one.
func (s *Sentinel) Master(tb testing.TB) *Server {
	tb.Helper()
	for _, watcher := range s.Watchers {
		if master := s.masterSeenBy(watcher); master != nil {
			return master
		}
	}
	require.Fail(tb, "no Sentinel names one of the nodes as the master")
	return nil
}

// masterSeenBy returns the node that is the master according to a Sentinel, or nil.
func (s *Sentinel) masterSeenBy(watcher *Server) *Server {
	reply, err := watcher.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinelName)
	address, _ := reply.([]any)
	if err != nil || len(address) != 2 {
		return nil
	}
	for _, node := range s.Nodes {
		if strconv.Itoa(node.port) == address[1] {
			return node
		}
	}
	return nil
}
