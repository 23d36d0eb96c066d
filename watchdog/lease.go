package watchdog

import (
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// The reasons given to [Subject].Lost. They are the end of a sentence that names the lock.
var (
	// ErrExpired means that the deadline came before a renewal succeeded. The store may still hold
	// the lease for its owner, and a renewal in flight may even extend it there. To free it for
	// others before it expires, release it.
	ErrExpired = errors.New("the lease ended before an extension or the release")

	// ErrGone means that the store replied that the owner no longer holds the lease.
	ErrGone = errors.New("gone from Redis for this owner (force-unlocked, " +
		"deleted, evicted, or lost in a failover or restart)")
)

// Lease is a lease under watch. Set Subject before [Watchdog.Add], and do not change it later. Add
// a Lease once, to a single watchdog, and do not copy a Lease.
type Lease struct {
	Subject Subject // what is leased; nil if nobody needs to know of a loss

	// Watchdog.mu guards the rest, but deadline is read without it.
	deadline atomic.Int64 // counted from epoch
	batch    *batch       // nil unless a renewal is due or under way
	index    int32        // in Watchdog.deadlines while the lease is watched
	stage    uint8        // one of those below
	renew    bool         // counted in Watchdog.renewable while the lease is watched
	alone    bool         // renewed in its own call, because the store rejected the last call
}

// Subject is the object of a Lease.
type Subject interface {
	// Lost is called at most once, when l is lost, with [ErrExpired] or [ErrGone]. The watchdog holds
	// no mutex, but other leases depend on the goroutine. So Lost must not block and must not call
	// Close. The other methods of the watchdog are allowed.
	Lost(l *Lease, reason error)
}

// The stages of a lease. A stage only grows.
const (
	unwatched = iota
	watched
	ended
)

// Deadline returns the time until which the lease can be trusted, on the monotonic clock. The
// deadline moves on when the lease is renewed or extended, never moves back, and stops when the
// lease ends. Before [Watchdog.Add], the deadline has no meaning. Deadline takes no mutex, and is
// safe for concurrent use.
func (l *Lease) Deadline() time.Time { return epoch.Add(time.Duration(l.deadline.Load())) }

func (l *Lease) until() time.Duration { return time.Duration(l.deadline.Load()) }

// live reports whether l is watched and may be trusted at t. Called with Watchdog.mu held.
func (l *Lease) live(t time.Duration) bool { return l.stage == watched && t < l.until() }

// deadlines is the binary heap of the watched leases, the earliest deadline first. Each lease knows
// its index, so that Remove removes the lease at once. A process may lock a hundred thousand times
// a second, and leases that stayed until their deadline would fill the heap.
type deadlines []*Lease

// place puts l at the free index i. If the order of the heap demands it, place moves l up or down,
// and moves the leases that l passes.
func (d deadlines) place(l *Lease, i int) {
	until := l.deadline.Load()
	for i > 0 {
		parent := (i - 1) / 2
		if d[parent].deadline.Load() <= until {
			break
		}
		d[i], d[parent].index = d[parent], int32(i)
		i = parent
	}
	for {
		child := 2*i + 1
		if child+1 < len(d) && d[child+1].deadline.Load() < d[child].deadline.Load() {
			child++
		}
		if child >= len(d) || until <= d[child].deadline.Load() {
			break
		}
		d[i], d[child].index = d[child], int32(i)
		i = child
	}
	d[i], l.index = l, int32(i)
}

// epoch is the instant from which deadlines count. A Duration can be read atomically, and epoch
// adds the monotonic reading, which UnixNano would lose.
var epoch = time.Now()

const never time.Duration = math.MaxInt64 // an instant that does not come

// Drift returns the part of a lease that its holder gives up for safety, as in the description of
// Redlock. The drift is one percent for clocks with different speeds, plus 2 ms because the store
// counts whole milliseconds. A lease of 2 ms or less is all drift.
func Drift(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// Deadline returns the time until which a lease can be trusted, for a lease acquired or renewed by
// a request sent at start. The result is start + lease - Drift(lease).
//
// Call time.Now right before you send the request, never after the reply. The deadline has a
// monotonic reading if start has a monotonic reading. Otherwise a step of the wall clock moves the
// deadline.
func Deadline(start time.Time, lease time.Duration) time.Time {
	return start.Add(lease - Drift(lease))
}
