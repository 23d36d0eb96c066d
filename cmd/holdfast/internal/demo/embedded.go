package demo

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	tcp "github.com/alicebob/miniredis/v2/server"
)

// embedded is a Redis for those who have none, on a free port of 127.0.0.1. It lives and dies with this process.
type embedded struct {
	redis *miniredis.Miniredis

	mu   sync.Mutex
	seen time.Time // guarded by mu: up to when leases have run
}

// startEmbedded starts the server. It is to be stopped with Close.
//
// miniredis' clock stands still unless it is driven. It is driven by each script, before that runs: all that has to do
// with leases is done by scripts, so nobody can tell the difference. A ticker instead would also take from a lease the
// time between the last tick and its beginning, and on a busy machine end it before its holder's own deadline.
// miniredis' own ClockTTL lets a key expire in the middle of a script, which Redis never does.
func startEmbedded() (*embedded, error) {
	redis, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	e := &embedded{redis: redis, seen: time.Now()}
	redis.Server().SetPreHook(func(_ *tcp.Peer, command string, _ ...string) bool {
		// Commands inside a script come along here too, while the script has miniredis locked.
		if command == "EVAL" || command == "EVALSHA" {
			e.advance()
		}
		return false
	})
	return e, nil
}

// advance makes up for the time that has passed.
func (e *embedded) advance() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.redis.FastForward(now.Sub(e.seen))
	e.seen = now
}

func (e *embedded) server() server {
	return server{Address: e.redis.Addr(), Embedded: true}
}

// Close stops the server and waits until its connections have ended.
func (e *embedded) Close() { e.redis.Close() }
