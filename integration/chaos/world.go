package chaos

import (
	"strconv"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

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
	w := &world{servers, servers.Clients(tb)}
	for _, sentinel := range servers.Sentinels() {
		// A machine that is busy must not look like a master that is down: what the Sentinels do by themselves is in nobody's
		// history.
		sentinel.Do(tb, "SENTINEL", "SET", w.group(), "down-after-milliseconds", "3000", "failover-timeout", "2000")
	}
	return w
}

// group is what the Sentinels call the servers.
func (w *world) group() string { return w.ClientOptions()[0].Sentinel.MasterSet }

// failovers is how often the Sentinels have agreed on a new master.
func (w *world) failovers(tb testing.TB) int64 {
	tb.Helper()
	var last int64
	for _, sentinel := range w.Sentinels() {
		epoch, err := strconv.ParseInt(sentinel.DoMap(tb, "SENTINEL", "MASTER", w.group())["config-epoch"], 10, 64)
		require.NoError(tb, err)
		last = max(last, epoch)
	}
	return last
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
