package chaos

import (
	"context"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
)

// stage is where a scenario is played: real servers and processes, or a bubble.
type stage interface {
	// clients returns the runner's own clients, which bypass the faults of the network: one for each
	// independent Redis.
	clients() []rueidis.Client
	// masters returns the servers that accept writes now.
	masters(tb testing.TB) []server
	// all returns all servers that hold data or may.
	all() []server
	// heal ends all faults of servers.
	heal(tb testing.TB)
	// links returns a new proxy for each server that a process may dial, and the proxies' addresses
	// by those of the servers.
	links(tb testing.TB) (links []*faultproxy.Proxy, routes map[string]string)
	// start starts the next process of a slot.
	start(r *run, s *slot, p plan) process
}

// server is what faults need of a server.
type server interface {
	Addr() string
	Pause(tb testing.TB)
	Resume(tb testing.TB)
	Kill(tb testing.TB)
	Restart(tb testing.TB)
	Call(args ...string) (any, error)
	Do(tb testing.TB, args ...string) any
}

// process is what faults need of a client process.
type process interface {
	waitUntilBegun(tb testing.TB)
	signal(tb testing.TB, s syscall.Signal)
	kill(tb testing.TB)
	stop()
	end(limit time.Duration)
}

// world is the servers of a run, and the runner's own clients, which bypass the faults of the
// network.
type world struct {
	*integration.Servers
	runners []rueidis.Client // one for each independent Redis
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

func (w *world) clients() []rueidis.Client { return w.runners }

func (w *world) masters(tb testing.TB) []server { return asServers(w.Masters(tb)) }

func (w *world) all() []server { return asServers(w.All()) }

func asServers[S server](some []S) []server {
	all := make([]server, len(some))
	for i := range some {
		all[i] = some[i]
	}
	return all
}

func (w *world) heal(tb testing.TB) { w.Heal(tb) }

func (w *world) links(tb testing.TB) (links []*faultproxy.Proxy, routes map[string]string) {
	routes = map[string]string{}
	for _, server := range w.dialled() {
		link := faultproxy.Start(tb, server.Addr())
		links = append(links, link)
		routes[server.Addr()] = link.Addr()
	}
	return links, routes
}

func (w *world) start(r *run, _ *slot, p plan) process {
	program := r.scenario.Program
	if program == "" {
		var err error
		program, err = os.Executable()
		require.NoError(r.tb, err)
	}
	p.Redises = w.addresses()
	return startProcess(r.tb, program, p, r.log)
}
