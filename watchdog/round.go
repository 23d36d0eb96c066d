package watchdog

import (
	"slices"
	"time"
)

// round is the work there is for one group. Watchdog.mu guards it.
type round struct {
	group   string
	running bool     // a goroutine works on it
	line    []*batch // by due; never empty unless running
}

// batch is a set of leases that one call renews.
type batch struct {
	leases   []*Lease
	due      time.Duration // when it may be tried, counted from epoch
	failures int           // how often it failed
}

// add puts b in line by its due time, behind those that are due at the same time. So a batch that
// failed is behind all that were put in line by this tick and before those of later ticks, and
// neither starves the other.
func (r *round) add(b *batch) {
	i := len(r.line)
	for i > 0 && r.line[i-1].due > b.due {
		i--
	}
	r.line = slices.Insert(r.line, i, b)
}

// shift takes the first batch out of the line.
func (r *round) shift() *batch {
	b := r.line[0]
	r.line[0] = nil // or the array would keep it alive
	r.line = r.line[1:]
	return b
}

// prune drops from the line what is not to be renewed at t.
func (r *round) prune(t time.Duration) {
	r.line = slices.DeleteFunc(r.line, func(b *batch) bool {
		b.prune(t)
		return len(b.leases) == 0
	})
}

// prune drops the leases that are not to be renewed at t.
func (b *batch) prune(t time.Duration) {
	b.leases = slices.DeleteFunc(b.leases, func(l *Lease) bool {
		l.inLine = l.renew && l.live(t)
		return !l.inLine
	})
}

// backoff is how long a batch waits that has failed before as often as given: at first lease/300,
// at least 5 ms; then twice as long each time, up to lease/30. Up to half of it is left out at
// random, so that the clients of a node which came back do not call it all at once.
func backoff(lease time.Duration, failures int) time.Duration {
	const shortest = 5 * time.Millisecond
	longest := max(shortest, lease/30)
	d := max(shortest, lease/300)
	for ; failures > 0 && d < longest; failures-- {
		d *= 2
	}
	return shortenedBy(min(d, longest), 50)
}
