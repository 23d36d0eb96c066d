package transport

import (
	"sync"
	"time"
)

// Clock estimates a server's clock by its replies. The estimate is never behind, and at most one
// round trip ahead, so no converted deadline is too early. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	start time.Time // on the local clock, which is monotonic from there; guarded by mu
	there time.Time // upper bound of the server's clock at start; zero if unknown; guarded by mu
	heard time.Time // when the reply came; guarded by mu
}

// trusted limits the age of an estimate, because clocks drift, and can be set.
const trusted = 10 * time.Second

// Hear records the time that a reply carries, which the server read between sent and received.
func (cl *Clock) Hear(clock, sent, received time.Time) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.start.IsZero() {
		cl.start = sent
	}
	const rounding = time.Millisecond
	latest := clock.Add(rounding - sent.Sub(cl.start))
	earliest := clock.Add(-received.Sub(cl.start))
	// If the old estimate contradicts the reply, the clock was set, or the reply is from another
	// server.
	if cl.there.IsZero() || latest.Before(cl.there) || earliest.After(cl.there) ||
		received.Sub(cl.heard) > trusted {
		cl.there, cl.heard = latest, received
	}
}

// At returns the latest time that the server's clock can show at a local time; zero if unknown.
func (cl *Clock) At(ours time.Time) time.Time {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.there.IsZero() || time.Since(cl.heard) > trusted {
		return time.Time{}
	}
	// The deadline of a caller may lack a monotonic reading, and the wall clock may have been set.
	now := time.Now()
	return cl.there.Add(now.Sub(cl.start) + ours.Sub(now))
}
