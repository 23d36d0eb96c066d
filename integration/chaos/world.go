package chaos

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"holdfast/integration"
	"holdfast/internal/redistest"
)

// world is the servers of a run, and the runner's own clients, which bypass the faults of the
// network.
type world struct {
	*integration.Servers
	clients []rueidis.Client // one for each independent Redis
}

func newWorld(tb testing.TB, s *Scenario) *world {
	tb.Helper()
	servers := integration.Start(tb, s.Topology, s.Variants...)
	w := &world{servers, servers.Clients(tb)}
	for _, sentinel := range servers.Sentinels() {
		// A busy machine must not look like a dead master: failovers by the Sentinels are in
		// nobody's history.
		sentinel.Do(tb, "SENTINEL", "SET", w.group(), "down-after-milliseconds", "3000",
			"failover-timeout", "2000")
	}
	return w
}

// group returns the name under which the Sentinels know the servers.
func (w *world) group() string { return w.ClientOptions()[0].Sentinel.MasterSet }

// countFailovers counts how often the first Sentinel names another master, until the function that
// it returns is called, which returns the number.
func (w *world) countFailovers(tb testing.TB) (stop func() int) {
	tb.Helper()
	sentinels := w.Sentinels()
	if len(sentinels) == 0 {
		return func() int { return 0 }
	}
	ctx, cancel := context.WithCancel(tb.Context()) // it also ends with a test that fails early
	times := make(chan int, 1)
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		var last any
		changes := -1 // the first name is no change
		for ctx.Err() == nil {
			now, err := sentinels[0].Call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", w.group())
			if err == nil && !reflect.DeepEqual(now, last) {
				last = now
				changes++
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
		times <- changes
	}()
	return func() int {
		cancel()
		return <-times
	}
}

// addresses returns how clients find the servers.
func (w *world) addresses() []address {
	var found []address
	for _, option := range w.ClientOptions() {
		found = append(found,
			address{Servers: option.InitAddress, Group: option.Sentinel.MasterSet,
				Single: option.ForceSingleClient})
	}
	return found
}

// dialled returns all servers that clients may connect to.
func (w *world) dialled() []*redistest.Server { return append(w.All(), w.Sentinels()...) }
