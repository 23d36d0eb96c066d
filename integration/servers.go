package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// Servers are the servers of one test, and end with it. Methods that take a testing.TB belong to
// the test's goroutine.
type Servers struct {
	topology Topology

	// masters is for topologies where they do not change: single, replicated, masters.
	masters []*redistest.Server
	replica *redistest.Server // of replicated
	group   *redistest.Sentinel
	cluster *redistest.Cluster
}

// Start starts the servers of a topology, with all of the variants, and returns when they are
// ready: replicas are in step, Sentinels know each other, a cluster serves all slots. That takes
// about 2 s for Sentinel and for Cluster, and next to nothing for the others. tb fails if they
// cannot be had, and tb's clean-up ends them.
func Start(tb testing.TB, topology Topology, variants ...Variant) *Servers {
	tb.Helper()
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("integration: it ran on %s%s", topology, all(variants))
		}
	})
	var opts []redistest.Option
	for _, variant := range variants {
		opts = append(opts, variant.options()...)
	}
	return topology.start(tb, opts)
}

// Client returns a new client as of an application, closed in tb's clean-up: of the master, of the
// Sentinels, of the cluster. The mutators change its options before use. tb fails on independent
// masters, of which each has its own: see [Servers.Clients].
func (s *Servers) Client(tb testing.TB, mutators ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	if s.topology.kind == masters {
		s.cannot(tb, "have one client for all servers: use Clients")
	}
	return s.Clients(tb, mutators...)[0]
}

// dialTimeout is longer than a service would choose: a machine that starts many servers is busy.
const dialTimeout = 2 * time.Second

// Clients is [Servers.Client] for each of the independent masters. Other topologies have one
// client.
func (s *Servers) Clients(tb testing.TB, mutators ...func(*rueidis.ClientOption)) []rueidis.Client {
	tb.Helper()
	mutators = append([]func(*rueidis.ClientOption){s.adapt}, mutators...)
	if s.group != nil {
		return []rueidis.Client{s.group.Client(tb, mutators...)}
	}
	if s.cluster != nil {
		return []rueidis.Client{s.cluster.Client(tb, mutators...)}
	}
	clients := make([]rueidis.Client, len(s.masters))
	for i, master := range s.masters {
		clients[i] = master.Client(tb, mutators...)
	}
	return clients
}

// ClientOptions returns the options of [Servers.Clients], for clients that the test makes itself.
func (s *Servers) ClientOptions() []rueidis.ClientOption {
	var options []rueidis.ClientOption
	switch {
	case s.group != nil:
		options = append(options, s.group.ClientOption())
	case s.cluster != nil:
		options = append(options, s.cluster.ClientOption())
	default:
		for _, master := range s.masters {
			options = append(options, master.ClientOption())
		}
	}
	for i := range options {
		s.adapt(&options[i])
	}
	return options
}

// adapt applies to the options of every client.
func (s *Servers) adapt(option *rueidis.ClientOption) {
	option.Dialer.Timeout = dialTimeout
	option.Sentinel.Dialer.Timeout = dialTimeout
	option.ForceSingleClient = s.topology.kind == sharded
}

// Masters returns the servers that accept writes now. For a Sentinel group that is the one that the
// Sentinels name.
func (s *Servers) Masters(tb testing.TB) []*redistest.Server {
	tb.Helper()
	switch {
	case s.group != nil:
		return []*redistest.Server{s.group.Master(tb)}
	case s.cluster != nil:
		return s.cluster.Masters(tb)
	default:
		return slices.Clone(s.masters)
	}
}

// Replicas returns the other servers that hold data, whether they run or not.
func (s *Servers) Replicas(tb testing.TB) []*redistest.Server {
	tb.Helper()
	now := s.Masters(tb)
	return slices.DeleteFunc(s.All(), func(server *redistest.Server) bool {
		return slices.Contains(now, server)
	})
}

// All returns the servers that hold data, or may: masters and replicas, not Sentinels.
func (s *Servers) All() []*redistest.Server {
	switch {
	case s.group != nil:
		return slices.Clone(s.group.Nodes)
	case s.cluster != nil:
		return s.cluster.All()
	case s.replica != nil:
		return append(slices.Clone(s.masters), s.replica)
	default:
		return slices.Clone(s.masters)
	}
}

// Sentinels returns the Sentinels, if there are any.
func (s *Servers) Sentinels() []*redistest.Server {
	if s.group == nil {
		return nil
	}
	return slices.Clone(s.group.Watchers)
}

// Each calls do with each server that runs and holds data or may.
func (s *Servers) Each(do func(server *redistest.Server)) {
	for _, server := range s.All() {
		if server.Running() {
			do(server)
		}
	}
}

// Home returns the master that now has the keys of the lock, or of any other name. tb fails on
// independent masters, which all have them.
func (s *Servers) Home(tb testing.TB, name string) *redistest.Server {
	tb.Helper()
	if s.cluster != nil {
		return s.cluster.Owner(tb, s.cluster.Slot(tb, name))
	}
	if s.topology.kind == masters {
		s.cannot(tb, "tell which server has "+name+": all have")
	}
	return s.Masters(tb)[0]
}

// cannot fails a test that asks for what its topology does not have.
func (s *Servers) cannot(tb testing.TB, what string) {
	tb.Helper()
	require.FailNow(tb, "integration: "+s.topology.String()+" cannot "+what)
}
