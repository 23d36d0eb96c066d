package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	tcp "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/connect"
)

// server is the address of a Redis server.
type server struct {
	Address  string `json:"address"` // host:port or a URL
	Embedded bool   `json:"embedded"`
}

// connect returns a client after a first reply of the server.
func (s server) connect(ctx context.Context) (rueidis.Client, error) {
	if s.Embedded {
		// Over RESP3 a subscription shares its connection with commands, which the embedded server
		// refuses. It also replies to CLUSTER SLOTS although it is a single node.
		return connect.Dial(ctx, rueidis.ClientOption{
			InitAddress: []string{s.Address}, AlwaysRESP2: true, DisableCache: true,
			ForceSingleClient: true,
		})
	}
	return connect.Flags{Redis: []string{s.Address}}.Client(ctx)
}

// embedded is a Redis server in this process, on a free port of 127.0.0.1.
type embedded struct {
	*miniredis.Miniredis
	lock string // of the scene that it belongs to

	mu   sync.Mutex
	seen time.Time // guarded by mu: the instant up to which leases have run
}

// startEmbedded starts the server. The caller must Close it.
//
// The clock of miniredis stands still unless it is driven. Scripts drive it before they run: only
// they touch leases. A ticker would take from a lease the time between the last tick and its
// beginning. miniredis' own ClockTTL lets a key expire during a script, which Redis never does.
func startEmbedded() (*embedded, server, error) {
	redis, err := miniredis.Run()
	if err != nil {
		return nil, server{}, fmt.Errorf("start the embedded server: %w", err)
	}
	e := &embedded{Miniredis: redis, seen: time.Now()}
	redis.Server().SetPreHook(func(_ *tcp.Peer, command string, _ ...string) bool {
		// Commands inside a script come here too, while the script has miniredis locked.
		if command == "EVAL" || command == "EVALSHA" {
			e.mu.Lock()
			defer e.mu.Unlock()
			now := time.Now()
			redis.FastForward(now.Sub(e.seen))
			e.seen = now
		}
		return false
	})
	return e, server{Address: redis.Addr(), Embedded: true}, nil
}

// nodes are servers that cues can stop, by name.
type nodes map[string]*embedded

// start starts the servers of the scenes, and enters their addresses in the casts.
func (n nodes) start(scenes []scene) error {
	for _, s := range scenes {
		var where []server
		for _, name := range s.nodes {
			e, address, err := startEmbedded()
			if err != nil {
				return err
			}
			e.lock, n[name], where = s.lock, e, append(where, address)
		}
		for i := range s.cast {
			s.cast[i].Nodes = where
		}
	}
	return nil
}

// Close stops the servers that still run.
func (n nodes) Close() {
	for _, e := range n {
		e.Close()
	}
}
