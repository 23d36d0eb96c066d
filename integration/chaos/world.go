package chaos

import (
	"testing"

	"github.com/redis/rueidis"

	"holdfast/integration"
	"holdfast/internal/redistest"
)

// world is the servers of a run, and the runner's own way to them, past the faults of the network.
type world struct {
	*integration.Servers
	clients []rueidis.Client // one for each Redis that is independent of the others
}

func newWorld(tb testing.TB, s *Scenario) *world {
	tb.Helper()
	servers := integration.Start(tb, s.Topology, s.Variants...)
	return &world{servers, servers.Clients(tb)}
}

// addresses is how clients find the servers.
func (w *world) addresses() []address {
	var found []address
	for _, option := range w.ClientOptions() {
		found = append(found, address{Servers: option.InitAddress, Group: option.Sentinel.MasterSet})
	}
	return found
}

// dialled are all servers that clients may connect to.
func (w *world) dialled() []*redistest.Server { return append(w.All(), w.Sentinels()...) }
