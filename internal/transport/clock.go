package transport

import (
	"sync"
	"time"
)

// Clock estimates the clock of a server from the times in its replies. The estimate is never behind
// the server's clock, and ahead of it by at most one round trip: what is due at a time of ours does
// not happen earlier there. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	start time.Time // on our clock, which is monotonic from there; guarded by mu
	there time.Time // upper bound of the server's clock at start; zero if unknown; guarded by mu
	heard time.Time // when that was learned; guarded by mu
}

// trusted is how long an estimate is used: clocks drift, and are set.
const trusted = 10 * time.Second

// Hear records the time that a reply carries, which the server read between sent and received.
func (c *Clock) Hear(clock, sent, received time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start.IsZero() {
		c.start = sent
	}
	const rounding = time.Millisecond
	latest := clock.Add(rounding - sent.Sub(c.start))
	earliest := clock.Add(-received.Sub(c.start))
	// If the old estimate contradicts the reply, the clock was set, or it is another server's.
	if c.there.IsZero() || latest.Before(c.there) || earliest.After(c.there) ||
		received.Sub(c.heard) > trusted {
		c.there, c.heard = latest, received
	}
}

// At returns the latest that the server's clock can show at a time of ours; zero if unknown.
func (c *Clock) At(ours time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.there.IsZero() || time.Since(c.heard) > trusted {
		return time.Time{}
	}
	// A deadline of a caller may be without a monotonic reading, and the wall clock was set since.
	now := time.Now()
	return c.there.Add(now.Sub(c.start) + ours.Sub(now))
}
