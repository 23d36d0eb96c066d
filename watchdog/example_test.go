package watchdog_test

import (
	"context"
	"fmt"
	"time"

	"holdfast/watchdog"
)

// The store of this example renews a lease once, and has lost it by the next renewal.
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
				fmt.Printf("renewing %v on %s\n", l.Value, group)
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
		Group:  "node 1",
		Value:  "order:42",
		OnLost: func(_ *watchdog.Lease, reason error) { lost <- reason },
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

func ExampleDrift() {
	fmt.Println(watchdog.Drift(30 * time.Second))
	// Output: 302ms
}

// renewAll is a store that renews all leases.
func renewAll(_ context.Context, _ string, leases []*watchdog.Lease) ([]watchdog.Outcome, error) {
	outcomes := make([]watchdog.Outcome, len(leases))
	for i := range outcomes {
		outcomes[i] = watchdog.Held
	}
	return outcomes, nil
}

// A lease that is not renewed is watched as well.
func ExampleWatchdog_Add() {
	w := watchdog.New(watchdog.Options{Lease: 30 * time.Second, Renew: renewAll})
	defer w.Close()

	lost := make(chan error, 1)
	l := &watchdog.Lease{OnLost: func(_ *watchdog.Lease, reason error) { lost <- reason }}
	w.Add(l, watchdog.Deadline(time.Now(), 50*time.Millisecond), false)
	fmt.Println(<-lost)
	// Output: its lease ended before it was extended or released
}

// A request of the caller, such as a nested lock with a longer lease, has extended the lease.
func ExampleWatchdog_Extend() {
	w := watchdog.New(watchdog.Options{Lease: 30 * time.Second, Renew: renewAll})
	defer w.Close()

	l := &watchdog.Lease{}
	w.Add(l, watchdog.Deadline(time.Now(), time.Minute), false)
	before := l.Deadline()

	start := time.Now() // before the request
	w.Extend(l, watchdog.Deadline(start, time.Hour))
	fmt.Println(l.Deadline().After(before))

	w.Extend(l, watchdog.Deadline(start, time.Second)) // never shortens
	fmt.Println(l.Deadline().Equal(watchdog.Deadline(start, time.Hour)))
	// Output:
	// true
	// true
}

// A lease that need not be renewed any more expires.
func ExampleWatchdog_SetRenew() {
	const lease = 900 * time.Millisecond
	renewed := make(chan struct{}, 1)
	w := watchdog.New(watchdog.Options{
		Lease: lease,
		Renew: func(
			ctx context.Context, group string, leases []*watchdog.Lease,
		) ([]watchdog.Outcome, error) {
			select {
			case renewed <- struct{}{}:
			default:
			}
			return renewAll(ctx, group, leases)
		},
	})
	defer w.Close()

	lost := make(chan error, 1)
	l := &watchdog.Lease{OnLost: func(_ *watchdog.Lease, reason error) { lost <- reason }}
	w.Add(l, watchdog.Deadline(time.Now(), lease), true)
	<-renewed
	w.SetRenew(l, false)
	fmt.Println(<-lost)
	// Output: its lease ended before it was extended or released
}

func ExampleWatchdog_Remove() {
	w := watchdog.New(watchdog.Options{Lease: 30 * time.Second, Renew: renewAll})
	defer w.Close()

	l := &watchdog.Lease{}
	w.Add(l, watchdog.Deadline(time.Now(), 30*time.Second), true)
	fmt.Println("watched until now:", w.Remove(l))
	fmt.Println("watched until now:", w.Remove(l))
	// Output:
	// watched until now: true
	// watched until now: false
}

func ExampleWatchdog_Leases() {
	w := watchdog.New(watchdog.Options{Lease: 30 * time.Second, Renew: renewAll})
	defer w.Close()
	w.Add(&watchdog.Lease{Value: "order:42"}, time.Now().Add(time.Minute), false)
	for _, l := range w.Leases() {
		fmt.Println(l.Value)
	}
	// Output: order:42
}

// Close neither releases nor reports the remaining leases.
func ExampleWatchdog_Close() {
	w := watchdog.New(watchdog.Options{Lease: 30 * time.Second, Renew: renewAll})
	l := &watchdog.Lease{OnLost: func(_ *watchdog.Lease, _ error) { fmt.Println("never said") }}
	w.Add(l, watchdog.Deadline(time.Now(), 30*time.Second), true)
	w.Close()
	fmt.Println(time.Now().Before(l.Deadline()))
	// Output: true
}

func ExampleDeadline() {
	start := time.Now() // before the request that takes the lease
	fmt.Println(watchdog.Deadline(start, 30*time.Second).Sub(start))
	// Output: 29.698s
}
