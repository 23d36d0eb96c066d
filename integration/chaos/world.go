package chaos

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// world is the servers of a run.
type world struct {
	// servers may fail; the others, such as Sentinels, are left alone.
	servers []*redistest.Server
	// redises is how clients find them.
	redises []address
	// clients are the runner's own, one for each of redises.
	clients []rueidis.Client
	// watched are the Sentinels' addresses and those of servers: all that clients may dial.
	dialled []*redistest.Server

	failover func(*run)
	moveSlot func(*run)
}

// Topology starts the servers of a world.
type Topology func(tb testing.TB) *world

// Single is one server that keeps all it was told.
func Single(tb testing.TB) *world { return alone(tb, redistest.WithAppendOnly()) }

// Forgetful is one server that keeps nothing.
func Forgetful(tb testing.TB) *world { return alone(tb) }

func alone(tb testing.TB, options ...redistest.Option) *world {
	tb.Helper()
	s := redistest.Start(tb, options...)
	return &world{
		servers: []*redistest.Server{s},
		dialled: []*redistest.Server{s},
		redises: []address{{Servers: []string{s.Addr()}}},
		clients: []rueidis.Client{s.Client(tb, patient)},
	}
}

// Masters are five servers that keep nothing, for RedLocks.
func Masters(tb testing.TB) *world {
	tb.Helper()
	w := &world{}
	for range 5 {
		one := alone(tb)
		w.servers = append(w.servers, one.servers...)
		w.dialled = append(w.dialled, one.dialled...)
		w.redises = append(w.redises, one.redises...)
		w.clients = append(w.clients, one.clients...)
	}
	return w
}

// SentinelGroup is a master and replicas that take its place.
func SentinelGroup(tb testing.TB) *world {
	tb.Helper()
	s := redistest.StartSentinel(tb)
	w := &world{servers: s.Nodes, dialled: s.Nodes, clients: []rueidis.Client{s.Client(tb, patient)}}
	return w
}

// Cluster is three masters with a replica each.
func Cluster(tb testing.TB) *world {
	tb.Helper()
	c := redistest.StartCluster(tb, 3)
	w := &world{servers: c.Nodes, dialled: c.Nodes, clients: []rueidis.Client{c.Client(tb, patient)}}
	var all []string
	for _, node := range c.Nodes {
		all = append(all, node.Addr())
	}
	w.redises = []address{{Servers: all}}
	w.moveSlot = func(r *run) {
		names := r.scenario.names()
		slot := c.Slot(r.tb, names[r.dice.IntN(len(names))])
		from := c.Owner(r.tb, slot)
		to := c.Nodes[r.dice.IntN(len(c.Nodes))]
		if from != to {
			c.MoveSlot(r.tb, slot, from, to)
		}
	}
	return w
}

// patient is for the runner's own clients, which have to wait for a machine that is busy.
func patient(option *rueidis.ClientOption) { option.Dialer.Timeout = 10 * time.Second }

// redis is the first of the runner's clients.
func (w *world) redis(tb testing.TB) rueidis.Client {
	tb.Helper()
	require.NotEmpty(tb, w.clients)
	return w.clients[0]
}
