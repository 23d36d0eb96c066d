package integration

import (
	"strconv"
	"testing"

	"holdfast/internal/redistest"
)

// Topology is how many servers there are, and what they know of each other.
type Topology struct {
	kind    kind
	masters int
}

type kind string

const (
	single     kind = "single"
	replicated kind = "replicated"
	sentinel   kind = "sentinel"
	cluster    kind = "cluster"
	sharded    kind = "sharded"
	masters    kind = "masters"
)

var (
	// Single is one server.
	Single = Topology{single, 1}
	// Replicated is a master and a replica in step with it, which is never promoted. Clients know
	// the master only.
	Replicated = Topology{replicated, 1}
	// Sentinel is a master, 2 replicas and 3 Sentinels, which promote a replica when the master is
	// silent for 1.5 s. Clients find the master through the Sentinels.
	Sentinel = Topology{sentinel, 1}
	// Cluster is a Redis Cluster of 3 masters with a replica each.
	Cluster = Topology{cluster, 3}
	// Sharded is a server that looks like a single one and refuses commands whose keys are in
	// several slots, as a proxy before shards does (Redis Software, Redis Cloud). It is none of
	// Topologies.
	Sharded = Topology{sharded, 1}
)

// Masters returns n servers that know nothing of each other, as a RedLock needs them.
func Masters(n int) Topology { return Topology{masters, n} }

// Independent returns how many servers there are, if they are all masters that know nothing of each
// other, else 0. Such servers can be in this process.
func (t Topology) Independent() int {
	if t.kind == single || t.kind == masters {
		return t.masters
	}
	return 0
}

// Topologies returns all of them, for a test that must hold everywhere.
func Topologies() []Topology {
	return []Topology{Single, Replicated, Sentinel, Cluster, Masters(3)}
}

// String returns a name such as sentinel or masters-3, fit for the name of a test.
func (t Topology) String() string {
	if t.kind == masters {
		return string(t.kind) + "-" + strconv.Itoa(t.masters)
	}
	return string(t.kind)
}

// start starts the servers, all with opts.
func (t Topology) start(tb testing.TB, opts []redistest.Option) *Servers {
	tb.Helper()
	s := &Servers{topology: t}
	switch t.kind {
	case single, masters:
		// Each can be cut off on its own, where the backend can do that.
		s.masters = redistest.StartAll(tb, t.masters, append(opts, redistest.WithOwnNetwork())...)
	case replicated:
		opts = append(opts, redistest.WithHostNetwork(), redistest.WithFastReplicas())
		s.masters = redistest.StartAll(tb, 1, opts...)
		s.replica = redistest.StartReplica(tb, s.masters[0], opts...)
	case sentinel:
		s.group = redistest.StartSentinel(tb,
			append(opts, redistest.WithReplicas(2), redistest.WithWatchers(3))...)
	case sharded: // the only node of a cluster; see ClientOptions
		s.masters = redistest.StartCluster(tb, t.masters, opts...).Nodes
	case cluster:
		s.cluster = redistest.StartCluster(tb, t.masters,
			append(opts, redistest.WithReplicas(1))...)
	default:
		tb.Fatal("integration: the zero Topology is none")
	}
	return s
}
