package rlock

import (
	"sync"
	"time"
)

// serverClock estimates the clock of a server from the times in its replies. The estimate is never behind the server's clock,
// and ahead of it by at most one round trip: so what is due at a time of ours does not happen earlier there. It is safe for
// concurrent use.
type serverClock struct {
	mu    sync.Mutex
	start time.Time // on our clock, which is monotonic from there; guarded by mu
	there time.Time // upper bound of what the server's clock showed then; zero if unknown; guarded by mu
	heard time.Time // when that was learned; guarded by mu
}

// trusted is how long an estimate is used: clocks drift, and are set.
const trusted = 10 * time.Second

// hear records the time that a reply carries, which the server read between sent and received.
func (c *serverClock) hear(clock, sent, received time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start.IsZero() {
		c.start = sent
	}
	const rounding = time.Millisecond
	latest, earliest := clock.Add(rounding-sent.Sub(c.start)), clock.Add(-received.Sub(c.start))
	// If the old estimate contradicts the reply, the clock was set, or it is another server's.
	if c.there.IsZero() || latest.Before(c.there) || earliest.After(c.there) || received.Sub(c.heard) > trusted {
		c.there, c.heard = latest, received
	}
}

// at returns the latest that the server's clock can show at a time of ours; zero if unknown.
func (c *serverClock) at(ours time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.there.IsZero() || time.Since(c.heard) > trusted {
		return time.Time{}
	}
	now := time.Now() // a deadline of the caller's may be without a monotonic reading, and the wall clock was set since
	return c.there.Add(now.Sub(c.start) + ours.Sub(now))
}
