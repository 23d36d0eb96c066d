package watchdog

import (
	"errors"
	"sync/atomic"
	"time"
)

// ErrExpired is the reason given to [Lease.OnLost] when the deadline came before a renewal
// succeeded. The store may still hold the lease for its owner, and a renewal in flight may even
// lengthen it there: whoever wants it free for others before it expires releases it.
var ErrExpired = errors.New("watchdog: lease expired: its deadline came before a renewal succeeded")

// ErrGone is the reason given to [Lease.OnLost] when the store answered that the owner no longer
// holds the lease.
var ErrGone = errors.New("watchdog: lease gone: the store says that its owner no longer holds it")

// Lease is one lease under watch. Its owner fills in the exported fields and hands it to
// [Watchdog.Add]; from then on they are constant. A Lease is added once, to one watchdog, and must
// not be copied.
type Lease struct {
	// Group says which leases may be renewed by one call: those with an equal Group, such as the
	// leases on one node.
	Group string

	// Value is the caller's. The watchdog does not look at it; a [RenewFunc] finds in it what to
	// renew.
	Value any

	// OnLost, unless nil, is told that the lease is lost and why: [ErrExpired] or [ErrGone]. It is
	// called at most once, without the watchdog's mutex, from a goroutine that other leases depend
	// on. It must not block and must not call Close; the other methods of the watchdog are allowed.
	OnLost func(reason error)

	// deadline is counted from epoch. It is written only while Watchdog.mu is held, and read also
	// without.
	deadline atomic.Int64

	// The rest is guarded by Watchdog.mu.

	stage stage
	index int  // where the lease is in Watchdog.deadlines while it is watched
	renew bool // counted in Watchdog.renewable while it is watched
	// inLine is true while the lease is in a batch that waits or is in flight, so that it is never
	// in two.
	inLine bool
}

// stage is where a lease is in its life. It only ever grows.
type stage uint8

const (
	unwatched stage = iota
	watched
	ended
)

// Deadline is the instant from which the lease must not be trusted any more. It moves on when the
// lease is renewed or extended, never back, and stands still once the lease ended. It has a
// monotonic reading, so that comparing it with time.Now is immune to steps of the wall clock.
//
// It takes no lock, costs a few nanoseconds and may be called at any time from any goroutine.
// Before [Watchdog.Add] it is of no meaning.
func (l *Lease) Deadline() time.Time {
	return epoch.Add(l.until())
}

func (l *Lease) until() time.Duration { return time.Duration(l.deadline.Load()) }

// live reports whether the lease is watched and may still be trusted at t. The caller holds
// Watchdog.mu.
func (l *Lease) live(t time.Duration) bool { return l.stage == watched && t < l.until() }
