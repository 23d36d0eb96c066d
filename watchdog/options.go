package watchdog

import (
	"context"
	"time"
)

// Outcome is the result of a renewal for a lease. The zero Outcome means that the outcome is
// unknown. The watchdog then tries again until the deadline of the lease.
type Outcome uint8

// The outcomes that are known.
const (
	notKnown Outcome = iota // the zero Outcome
	Held                    // the owner still held the lease, and it was renewed
	Gone                    // the owner does not hold the lease any more
	// Stopped means that Renew chose not to renew the lease. The watchdog switches renewals off, like
	// [Watchdog.SetRenew] with false. The watchdog still watches the deadline and reports
	// [ErrExpired], and SetRenew with true switches renewals on again.
	Stopped
	// Rejected means that the store rejected the call, perhaps because of another lease. The watchdog
	// tries the lease again at once, in its own call. After a success, the lease shares calls again.
	Rejected
)

// Options configures a [Watchdog]. Lease and Renew are required.
type Options struct {
	// Lease is the time that a lease lasts after a renewal, at least 1 ms. The watchdog renews every
	// Lease/3.
	Lease time.Duration

	// Renew renews leases of a group, for Lease each, and returns the outcomes in the same order. The
	// result may be shorter than leases, and then the other outcomes are unknown. The error says why,
	// and goes to OnFailure. Renew may return outcomes and an error together. If Renew calls
	// [runtime.Goexit], all outcomes are unknown. Renew must not give a lost lease back to its owner.
	// A second renewal must do no harm.
	//
	// Renew should wait for the reply until ctx ends, because a late reply still counts. The lease
	// then lasts from the start of the call. ctx ends at [Deadline](start of the call, Lease), because
	// a later reply could not prolong any lease, or when the watchdog closes. Renew must return soon
	// after ctx has ended, because Close waits for Renew.
	//
	// The watchdog calls Renew on several goroutines at the same time, even for the same group. If a
	// call takes longer than Lease/6, the watchdog may call Renew again for the same leases. A call
	// has at most 100 leases. Renew must neither modify nor keep leases.
	Renew func(ctx context.Context, group string, leases []*Lease) ([]Outcome, error)

	// Group, unless nil, returns the group of a lease, such as the node that has the lease, and a
	// number. Leases share a call only if both are equal. Both may change from tick to tick, but a
	// lease that is due keeps them until it is renewed. The watchdog calls Group for each lease that
	// becomes due or may be late, and holds its mutex meanwhile, so Group must not block.
	Group func(*Lease) (group string, split uint64)

	// OnFailure, unless nil, receives the number of leases to try again. The watchdog calls OnFailure
	// after a call of Renew with unknown outcomes, after the rejection of a single lease, and once a
	// call is overdue, but not after Close. The watchdog holds no mutex, and may call OnFailure on
	// several goroutines at the same time. OnFailure must neither block nor call Close. For a node
	// without a connection, calls may come many times a second, so a logger should limit its rate.
	OnFailure func(group string, leases int, err error)

	// OnOverdue, unless nil, is called like OnFailure when a call is overdue, with the leases to try
	// again. The reply may still come and count.
	OnOverdue func(leases []*Lease)

	// OnLate, unless nil, is called at a tick for each group with late leases, see [Lateness]. After a
	// tick with such calls, OnLate is not called for 3/10 of Lease. OnLate must neither block nor call
	// Close.
	OnLate func(group string, late Lateness)

	// Only tests set the rest.

	batchSize int // the largest number of leases in one call; defaults to 100
	// callTimeout is how long a call may take before another call renews its leases, while the first
	// call continues. It doubles with each further try. It defaults to Lease/6, which leaves time for
	// two tries before the deadline.
	callTimeout time.Duration
}

// Lateness describes a group in which renewals take longer than from one tick to the next. A lease
// is late if it has been due for 3/10 of [Options].Lease or longer, which is the shortest time
// between two regular ticks. A lease whose latest call has failed is not late, because OnFailure
// reports this lease.
type Lateness struct {
	Leases int           // leases of the group with renewals switched on
	Late   int           // how many of them are late
	Left   time.Duration // until the earliest deadline of the late leases
}
