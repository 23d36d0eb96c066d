package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/rlock"
)

// A service shares a Redis with others, as with a NameMapper of Redisson.
func ExamplePrefix() {
	client, disconnect := connectWith(rlock.Options{NameMapper: rlock.Prefix("shop:")})
	defer disconnect()
	fmt.Println(client.NewLock("order:42").Name())
	// Output: shop:order:42
}

// A lock that a replica must have before anyone works under it, on a server that has none.
func ExampleReplicationError() {
	client, disconnect := connectWith(
		rlock.Options{SyncReplicas: 1, SyncTimeout: 200 * time.Millisecond})
	defer disconnect()
	lock, ctx := client.NewLock("order:42"), context.Background()
	_, err := lock.Lock(ctx, rlock.Watchdog)
	var missing *rlock.ReplicationError
	if errors.As(err, &missing) {
		fmt.Printf("%d of %d replicas\n", missing.Got, missing.Want)
	}
	locked, err := lock.IsLocked(ctx)
	fmt.Println("undone:", !locked, err)
	// Output:
	// 0 of 1 replicas
	// undone: true <nil>
}

// printer is a tracer that prints what it hears.
type printer struct{}

func (printer) AcquireStart(ctx context.Context, _ rlock.AcquireStart) context.Context {
	return ctx
}

func (printer) AcquireEnd(_ context.Context, d rlock.AcquireEnd) {
	fmt.Println(d.Lock.Kind, d.Lock.Name, d.How)
}

// HoldStart makes it an [rlock.HoldTracer] as well.
func (p printer) HoldStart(ctx context.Context, _ rlock.HoldStart,
) (context.Context, rlock.HoldTrace) {
	return ctx, p
}

func (printer) HoldEnd(d rlock.HoldEnd) {
	if d.Last {
		fmt.Println("free again, error:", d.Err)
	}
}

func ExampleTracer() {
	client, disconnect := connectWith(rlock.Options{Tracer: printer{}})
	defer disconnect()
	lock := client.NewLock("order:42")
	_ = rlock.Do(context.Background(), lock, rlock.NoWait, rlock.Watchdog,
		func(ctx context.Context) error {
			return rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog,
				func(context.Context) error { return nil })
		})
	// Output:
	// reentrant order:42 free
	// reentrant order:42 reentered
	// free again, error: <nil>
}

func ExampleMultiTracer() {
	client, disconnect := connectWith(rlock.Options{Tracer: rlock.MultiTracer(printer{}, printer{})})
	defer disconnect()
	_ = rlock.Do(context.Background(), client.NewFairLock("import"), rlock.NoWait, rlock.Watchdog,
		func(context.Context) error { return nil })
	// Output:
	// fair import free
	// fair import free
	// free again, error: <nil>
	// free again, error: <nil>
}
