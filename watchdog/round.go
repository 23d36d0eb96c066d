package watchdog

import (
	"slices"
	"time"
)

// round is the pending work of one group. Watchdog.mu guards it.
type round struct {
	group   string
	running bool     // a goroutine works on it
	queue   []*batch // by due; never empty unless running
}

// batch is a set of leases that one call renews.
type batch struct {
	leases   []*Lease
	due      time.Duration // when it may be renewed, counted from epoch
	failures int           // number of failed calls
}

// add queues b by its due time, behind batches that are due at the same time. A batch that failed
// is then behind all batches of this tick and before those of later ticks, and neither starves the
// other.
func (r *round) add(b *batch) {
	i := len(r.queue)
	for i > 0 && r.queue[i-1].due > b.due {
		i--
	}
	r.queue = slices.Insert(r.queue, i, b)
}

// shift takes the first batch off the queue.
func (r *round) shift() *batch {
	b := r.queue[0]
	r.queue[0] = nil // else the array would keep it alive
	r.queue = r.queue[1:]
	return b
}

// prune drops the leases that are not to be renewed at t, and batches without leases.
func (r *round) prune(t time.Duration) {
	r.queue = slices.DeleteFunc(r.queue, func(b *batch) bool {
		b.prune(t)
		return len(b.leases) == 0
	})
}

// prune drops the leases that are not to be renewed at t.
func (b *batch) prune(t time.Duration) {
	b.leases = slices.DeleteFunc(b.leases, func(l *Lease) bool {
		l.queued = l.renew && l.live(t)
		return !l.queued
	})
}

// backoff returns how long a batch waits after a failure, given the number of earlier failures. It
// starts at lease/300, at least 5 ms, and doubles each time up to lease/30. Up to half of it is
// left out at random, so that the clients of a node that came back do not call it all at once.
func backoff(lease time.Duration, failures int) time.Duration {
	const shortest = 5 * time.Millisecond
	longest := max(shortest, lease/30)
	d := max(shortest, lease/300)
	for ; failures > 0 && d < longest; failures-- {
		d *= 2
	}
	return shortenedBy(min(d, longest), 50)
}
