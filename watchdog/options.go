package watchdog

import (
	"context"
	"time"
)

// Outcome is what a renewal did to one lease. The zero Outcome means that the lease may or may not
// have been renewed. The watchdog then tries again while the deadline of the lease allows.
type Outcome uint8

// The outcomes that are known.
const (
	notKnown Outcome = iota // the zero Outcome
	Held                    // the owner still held the lease, and it was renewed
	Gone                    // the owner does not hold the lease any more
	Stopped                 // it was not renewed, on purpose, and will not be: see SetRenew
	// Rejected means that the store rejected the call, perhaps because of another lease in it. The
	// lease is tried again at once, in a call of its own, and shares calls again once it was renewed.
	Rejected
)

// Options configures a [Watchdog]. Lease and Renew are required.
type Options struct {
	// Lease is how long a lease lasts after a renewal, at least 1 ms. It is renewed each Lease/3.
	Lease time.Duration

	// Renew renews leases, all of one group, for Lease each, and returns the outcome for each lease,
	// in the same order. The list may be shorter: then the other outcomes are not known. The error
	// says why there are such leases, and is passed to OnFailure. The outcomes returned with the
	// error are valid. A lease that is gone must not be given to its owner again. No outcome is
	// known if Renew ends the goroutine. Renewing twice must be harmless.
	//
	// Renew should wait for the reply until ctx ends, because a late reply still counts, from when
	// Renew was called. ctx ends when leases that begin with the call would end, and when the
	// watchdog closes. Renew must return soon after that, because Close waits for it.
	//
	// The watchdog calls Renew on several goroutines at once, even for one group. If a call takes
	// longer than Lease/6, the watchdog may make another call for the same leases. A call has at
	// most 100 leases. Renew must neither modify nor retain leases.
	Renew func(ctx context.Context, group string, leases []*Lease) ([]Outcome, error)

	// Split, unless nil, returns a number for a lease. Leases of a group with different numbers do not
	// share a call. The number of a lease may change from one tick to the next. Split is called with
	// the watchdog locked, for every lease at every tick, and must not block.
	Split func(*Lease) uint64

	// OnFailure, unless nil, is called with the number of leases that will be tried again: after a
	// call of Renew with unknown outcomes or that rejected its only lease, and once a call is
	// overdue. It is not called after the watchdog was closed. It runs without the watchdog's mutex,
	// on several goroutines at once, and must neither block nor call Close. Calls for a node that
	// rejects connections fail many times a second, so a logger should limit its rate.
	OnFailure func(group string, leases int, err error)

	// OnOverdue, unless nil, is called like OnFailure once a call takes longer than Lease/6, with the
	// leases that will be tried again. The reply may still come, and still counts.
	OnOverdue func(leases []*Lease)

	// OnLate, unless nil, is called at a tick, and at most once per third of Lease, for each group
	// with leases that became due at the tick before and are not renewed yet. It leaves out leases
	// whose latest call has failed, which OnFailure reports. It must neither block nor call Close.
	OnLate func(group string, late Lateness)

	// Only tests set these.

	batchSize int // the largest number of leases in one call; defaults to 100
	// callTimeout is how long a call may take before another call renews its leases, while the first
	// call goes on. It doubles with each further try. It defaults to Lease/6, which leaves time for
	// two tries before the deadline.
	callTimeout time.Duration
}

// Lateness says how far the renewal of a group lags behind.
type Lateness struct {
	Late, Leases int           // Late of so many leases were not renewed within a period
	Left         time.Duration // until the first of them is lost
}
