package watchdog

import (
	"context"
	"time"
)

// Outcome is what a renewal did to one lease.
type Outcome uint8

// The outcomes. A lease that is Unknown is retried while its deadline allows.
const (
	Unknown Outcome = iota // the lease may or may not have been renewed
	Held                   // the owner still held the lease, and it was renewed
	Gone                   // the owner does not hold the lease any more
	Stopped                // it was not renewed, on purpose, and will not be: see SetRenew
)

// RenewFunc renews leases, all of one group, for [Options].Lease each, and returns the outcome for
// each lease, in the same order. A lease without an outcome, because the list is shorter, is
// Unknown. The error says why there are such leases, and is passed to [Options].OnFailure; the
// outcomes returned with it are valid. A lease that is gone must not be given to its owner again.
// Renewing twice must be harmless.
//
// ctx ends after [Options].CallTimeout and when the watchdog closes. RenewFunc must return soon
// after that: until it does, no other lease of its group is renewed and Close waits. It is called
// from several goroutines at once, but never twice at once for a group. It must neither modify nor
// retain leases.
type RenewFunc func(ctx context.Context, group string, leases []*Lease) ([]Outcome, error)

// Options configures a [Watchdog]. Lease and Renew are required.
type Options struct {
	// Lease is how long a lease lasts after a renewal, at least 1 ms. It is renewed each Lease/3.
	Lease time.Duration

	Renew       RenewFunc     // renews a batch of leases; required
	BatchSize   int           // the largest number of leases in one call; defaults to 100
	CallTimeout time.Duration // bounds one call; defaults to Lease/6, which leaves time for a retry

	// OnFailure, unless nil, is called after each call of Renew that left leases unknown, with
	// their number, unless the watchdog was closed meanwhile. It runs without the watchdog's mutex,
	// on several goroutines at once, and must neither block nor call Close. A node that refuses
	// connections fails many times a second, so a logger should limit its rate.
	OnFailure func(group string, leases int, err error)
}
