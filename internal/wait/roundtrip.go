package wait

import (
	"sync"
	"time"
)

const (
	roundTripsKept = 32 // few, so that a change shows soon
	enoughTrips    = 20 // from here on the longest does not count
	timesRoundTrip = 3
)

// roundTrips holds the latest round-trip times of a server. The zero value is empty. It is safe for
// concurrent use.
type roundTrips struct {
	mu   sync.Mutex
	kept [roundTripsKept]time.Duration // guarded by mu; a ring
	seen int                           // guarded by mu; round trips ever added
}

// add records how long an answer took. Calls without an answer must not be added, because their
// round-trip time is unknown.
func (r *roundTrips) add(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept[r.seen%roundTripsKept] = took
	r.seen++
}

// high returns about the 95th percentile of the round trips kept: the longest, or with enough of
// them the second longest. One outlier, such as a node that hung for an hour, does not count. mu
// must be held.
func (r *roundTrips) high() time.Duration {
	kept := min(r.seen, roundTripsKept)
	var longest, second time.Duration
	for _, d := range r.kept[:kept] {
		second = max(second, min(d, longest))
		longest = max(longest, d)
	}
	if kept >= enoughTrips {
		return second
	}
	return longest
}

// timeout returns how long an answer is worth waiting for: timesRoundTrip times what nearly all
// answers took, at most limit, but never less than least. Without any answer it is limit, so that a
// first attempt succeeds however far away the server is.
func (r *roundTrips) timeout(least, limit time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen > 0 {
		limit = min(limit, timesRoundTrip*r.high())
	}
	return max(limit, least)
}

// Answered records how long the server took for an answer, even if its caller no longer waited.
// Calls without an answer must not be recorded. It does not block and is safe for concurrent use.
func (p *Pool) Answered(took time.Duration) { p.trips.add(took) }

// Timeout returns how long an answer is worth waiting for: three times the 95th percentile of the
// latest 32 answers, at most limit, but never less than least. Before the first answer it is limit.
// It is safe for concurrent use.
func (p *Pool) Timeout(least, limit time.Duration) time.Duration {
	return p.trips.timeout(least, limit)
}
