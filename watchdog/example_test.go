package watchdog_test

import (
	"context"
	"fmt"
	"time"

	"holdfast/watchdog"
)

// The store of this example renews a lease once, and has lost it by the next renewal.
type order struct {
	id   int
	lost chan<- error
}

func (o order) Lost(_ *watchdog.Lease, reason error) { o.lost <- reason }

func (o order) String() string { return fmt.Sprintf("order:%d", o.id) }

func Example() {
	renewals := 0
	w := watchdog.New(watchdog.Options{
		Lease: 1500 * time.Millisecond,
		Renew: func(
			_ context.Context, group string, leases []*watchdog.Lease,
		) ([]watchdog.Outcome, error) {
			renewals++
			outcomes := make([]watchdog.Outcome, len(leases))
			for i, l := range leases {
				fmt.Printf("renewing %v on %s\n", l.Subject, group)
				outcomes[i] = watchdog.Gone
				if renewals == 1 {
					outcomes[i] = watchdog.Held
				}
			}
			return outcomes, nil
		},
	})
	defer w.Close()

	start := time.Now() // before the request that takes the lease
	lost := make(chan error, 1)
	l := &watchdog.Lease{
		Group:   "node 1",
		Subject: order{id: 42, lost: lost},
	}
	w.Add(l, watchdog.Deadline(start, 1500*time.Millisecond), true)

	fmt.Println(<-lost)
	fmt.Println("still watched:", w.Remove(l))
	// Output:
	// renewing order:42 on node 1
	// renewing order:42 on node 1
	// it is no longer this owner's in Redis: it was force-unlocked, deleted, evicted, or lost in a failover or restart
	// still watched: false
}
