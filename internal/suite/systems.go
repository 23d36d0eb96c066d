package suite

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"holdfast/internal/redistest"
)

// Cluster is the world of a Redis Cluster. Its three masters are one server to a promise. They have
// no replicas, so that a master that a test pauses stays the master.
var Cluster = World{Name: "cluster", Masters: 1, fresh: func(t *testing.T, _ int) []reusable {
	c := redistest.StartCluster(t, 3, redistest.WithReplicas(0))
	s := &system{client: c.Client, healthy: c.WaitForHealth}
	for _, node := range c.Nodes {
		s.nodes = append(s.nodes, process{node})
	}
	s.home = func(tb testing.TB, name string) process {
		tb.Helper()
		return process{c.Owner(tb, c.Slot(tb, name))}
	}
	return []reusable{s}
}}

// Sentinel is the world of a master that clients find through a Sentinel. It has no replica, so
// that it stays the master.
var Sentinel = World{Name: "sentinel", Masters: 1, fresh: func(t *testing.T, _ int) []reusable {
	s := redistest.StartSentinel(t, redistest.WithReplicas(0))
	master := process{s.Nodes[0]}
	return []reusable{&system{
		nodes: []process{master}, client: s.Client, healthy: s.WaitForHealth,
		home: func(testing.TB, string) process { return master },
	}}
}}

// system is a [Server] that clients reach through the slots of a cluster or through a Sentinel.
type system struct {
	nodes   []process
	client  func(testing.TB, ...func(*rueidis.ClientOption)) rueidis.Client
	home    func(tb testing.TB, name string) process // has the keys and channels of a name
	healthy func(tb testing.TB)                      // waits until all processes work together
}

// clustered reports whether the keys are spread over servers by their slots.
func (e *Env) clustered() bool {
	s, ok := e.Servers[0].(*system)
	return ok && len(s.nodes) > 1
}

// addressed reports whether clients know their server by an address that does not change.
func (e *Env) addressed() bool {
	_, ok := e.Servers[0].(*system)
	return !ok
}

func (s *system) Client(
	tb testing.TB, mutators ...func(*rueidis.ClientOption),
) rueidis.Client {
	tb.Helper()
	return s.client(tb, mutators...)
}

func (s *system) Keys(tb testing.TB) (keys []string) {
	tb.Helper()
	for _, node := range s.nodes {
		keys = append(keys, node.Keys(tb)...)
	}
	return keys
}

// Do executes a command where its key or channel is, or, without one, on each node. PUBSUB lists
// the channels of all nodes, sharded ones among them. PUBLISH uses a sharded channel if somebody
// listens on one of that name.
func (s *system) Do(tb testing.TB, args ...string) any {
	tb.Helper()
	switch args[0] {
	case "DEL":
		for _, key := range args[1:] {
			s.home(tb, key).Do(tb, "DEL", key)
		}
		return nil
	case "PUBLISH":
		if node := s.home(tb, args[1]); slices.Contains(shardChannels(tb, node), args[1]) {
			return node.Do(tb, "SPUBLISH", args[1], args[2])
		}
		return s.nodes[0].Do(tb, args...)
	case "PUBSUB":
		var channels []any
		for _, node := range s.nodes {
			for _, channel := range node.Do(tb, args...).([]any) {
				if channel != "__sentinel__:hello" { // on which Sentinels find each other
					channels = append(channels, channel)
				}
			}
			for _, channel := range shardChannels(tb, node) {
				channels = append(channels, channel)
			}
		}
		return channels
	case "ACL", "CLIENT", "CONFIG", "FLUSHALL", "INFO", "SCRIPT":
		var replies []string
		for _, node := range s.nodes {
			reply, _ := node.Do(tb, args...).(string)
			replies = append(replies, reply)
		}
		return strings.Join(replies, "")
	default:
		return s.home(tb, args[1]).Do(tb, args...)
	}
}

// shardChannels returns the sharded channels of a node on which somebody listens.
func shardChannels(tb testing.TB, node process) (names []string) {
	tb.Helper()
	reply, err := node.Call("PUBSUB", "SHARDCHANNELS")
	if err != nil {
		return nil // a server before Redis 7 has none
	}
	for _, name := range reply.([]any) {
		names = append(names, name.(string))
	}
	return names
}

// each does something to all nodes.
func (s *system) each(tb testing.TB, do func(process, testing.TB)) {
	tb.Helper()
	for _, node := range s.nodes {
		do(node, tb)
	}
}

func (s *system) Pause(tb testing.TB)      { s.each(tb, process.Pause) }
func (s *system) Resume(tb testing.TB)     { s.each(tb, process.Resume) }
func (s *system) Kill(tb testing.TB)       { s.each(tb, process.Kill) }
func (s *system) Disconnect(tb testing.TB) { s.each(tb, process.Disconnect) }
func (s *system) Connect(tb testing.TB)    { s.each(tb, process.Connect) }

func (s *system) Restart(tb testing.TB) {
	tb.Helper()
	s.each(tb, process.Restart)
	s.healthy(tb)
}

func (s *system) Reject(tb testing.TB, code string) {
	tb.Helper()
	s.each(tb, func(p process, tb testing.TB) { p.Reject(tb, code) })
}

func (s *system) reset(tb testing.TB) {
	tb.Helper()
	s.each(tb, process.reset)
	s.healthy(tb)
}
