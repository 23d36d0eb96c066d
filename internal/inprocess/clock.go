package inprocess

import (
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// clock drives the clock of miniredis, which does not run by itself. It catches up with the time of
// the process before commands are executed. There is no ticker: time also passes in a bubble of
// testing/synctest, and a busy machine delays nothing. ClockTTL of miniredis would let a key expire
// in the middle of a script, which Redis never does.
type clock struct {
	redis *miniredis.Miniredis

	mu    sync.Mutex
	ahead time.Duration            // guarded by mu; of the clock of this process
	seen  time.Time                // guarded by mu; up to when leases have run
	shown time.Time                // guarded by mu; the time of the last command
	kept  map[string]time.Duration // guarded by mu; keys that do not expire, and their TTL
}

func (c *clock) start(redis *miniredis.Miniredis) {
	c.redis, c.seen, c.kept = redis, time.Now(), make(map[string]time.Duration)
	redis.SetTime(c.seen)
}

// catchUp makes leases run up to the present instant.
func (c *clock) catchUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Add(c.ahead)
	elapsed := now.Sub(c.seen)
	for key, ttl := range c.kept {
		if c.redis.Exists(key) {
			c.redis.SetTTL(key, elapsed+ttl)
		}
	}
	c.redis.FastForward(elapsed)
	// A real server needs more than a microsecond for a command, so its clock shows each one another
	// time. The time of a bubble stands still meanwhile.
	c.shown = c.shown.Add(time.Microsecond)
	if now.After(c.shown) {
		c.shown = now
	}
	c.redis.SetTime(c.shown)
	c.seen = now
}

// CatchUp makes leases run up to the present instant, for callers of Redis.
func (s *Server) CatchUp() { s.clock.catchUp() }

// Advance moves the clock of the server.
func (s *Server) Advance(d time.Duration) {
	s.clock.mu.Lock()
	s.clock.ahead += d
	s.clock.mu.Unlock()
	s.clock.catchUp()
}

// Keep keeps the TTL of a key from running, as long as the key is there; with 0 it runs again.
func (s *Server) Keep(key string, ttl time.Duration) {
	s.clock.catchUp()
	s.clock.mu.Lock()
	defer s.clock.mu.Unlock()
	if ttl == 0 {
		delete(s.clock.kept, key)
		return
	}
	s.clock.kept[key] = ttl
	s.clock.redis.SetTTL(key, ttl)
}
