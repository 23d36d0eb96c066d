package rlock

import (
	"sync"
	"time"
)

// serverClock estimates the clock of a server from the times in its replies. The estimate may be ahead of the server, by at
// most the round trip of the reply that it is from, and is not behind it: what is to happen at a time of ours does not happen
// earlier there.
type serverClock struct {
	mu    sync.Mutex
	start time.Time // on our clock, which is monotonic from there; guarded by mu
	there time.Time // what the server's clock showed then, at the latest; zero if it is not known; guarded by mu
	heard time.Time // when that was learned; guarded by mu
}

// trusted is for how long an estimate is used: clocks drift, and are set.
const trusted = 10 * time.Second

// hear notes that the server's clock showed a time when it executed a command.
func (c *serverClock) hear(clock, sent, received time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start.IsZero() {
		c.start = sent
	}
	const rounding = time.Millisecond
	latest, earliest := clock.Add(rounding-sent.Sub(c.start)), clock.Add(-received.Sub(c.start))
	// The clock was set, or is another server's, if what is known cannot be true any more.
	if c.there.IsZero() || latest.Before(c.there) || earliest.After(c.there) || received.Sub(c.heard) > trusted {
		c.there, c.heard = latest, received
	}
}

// at returns what the server's clock shows at a time of ours, at the latest; the zero time if that is not known.
func (c *serverClock) at(ours time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.there.IsZero() || time.Since(c.heard) > trusted {
		return time.Time{}
	}
	return c.there.Add(ours.Sub(c.start))
}
