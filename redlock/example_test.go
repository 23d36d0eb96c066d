package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/redlock"
	"holdfast/rlock"
)

func ExampleNew() {
	clients, disconnect := masters(3)
	defer disconnect()

	lock := redlock.New(
		clients[0].NewLock("order:42"), clients[1].NewLock("order:42"), clients[2].NewLock("order:42"),
	).WithOptions(durable)
	hold, err := lock.Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	fmt.Println("held:", hold.Name())
	fmt.Println("error:", hold.Unlock(context.Background()))
	// Output:
	// held: order:42
	// error: <nil>
}

func ExampleLock_TryLock() {
	clients, disconnect := masters(3)
	defer disconnect()
	ctx := context.Background()
	lock := redlock.NewOn("order:42", durable, clients...)

	hold, err := lock.TryLock(ctx, 3*time.Second, 30*time.Second) // wait, lease
	if err != nil {
		panic(err)
	}
	// The lease less one per cent and 2 ms, and less the time of the acquisition.
	fmt.Println("valid for 25 s still:", time.Until(hold.Deadline()) > 25*time.Second)

	// Another caller does not want to wait that long.
	_, err = lock.TryLock(ctx, time.Second, 30*time.Second)
	fmt.Println("held by the first:", errors.Is(err, rlock.ErrNotAcquired))
	fmt.Println("error:", hold.Unlock(ctx))
	// Output:
	// valid for 25 s still: true
	// held by the first: true
	// error: <nil>
}

func ExampleLock_Unlock() {
	clients, disconnect := masters(3)
	defer disconnect()
	lock := redlock.NewOn("order:42", durable, clients...)

	// Code ported from Java has no hold at hand. The owner in the context stands for the thread.
	ctx := rlock.WithOwner(context.Background())
	if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
		panic(err)
	}
	fmt.Println(lock.Unlock(ctx))
	fmt.Println(errors.Is(lock.Unlock(ctx), rlock.ErrNotHeld))
	// Output:
	// <nil>
	// true
}

func ExampleLock_WithOptions() {
	clients, disconnect := masters(3)
	defer disconnect()
	ctx := context.Background()

	lock := redlock.NewOn("order:42", durable, clients...)
	far := lock.WithOptions(
		redlock.Options{FsyncAlways: true, NodeTimeout: 3 * time.Second},
	) // masters on other continents

	// It is the same lock.
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	_, err = far.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	_ = hold.Unlock(ctx)
	// Output: true
}

// The error names the masters that need attention if there is no quorum.
func ExampleQuorumError() {
	clients, disconnect := masters(3)
	defer disconnect()
	for _, client := range clients[1:] { // as if these masters could not be reached
		_ = client.Close(context.Background())
	}

	_, err := redlock.NewOn("order:42", durable, clients...).
		TryLock(context.Background(), rlock.NoWait, rlock.Watchdog)
	var quorum *redlock.QuorumError
	switch {
	case err == nil:
		fmt.Println("acquired")
	case errors.Is(err, rlock.ErrNotAcquired):
		fmt.Println("somebody else has it") // nothing is wrong
	case errors.As(err, &quorum):
		fmt.Println("needed:", quorum.Want)
		for _, node := range quorum.Nodes {
			if errors.Is(node.Err, rlock.ErrClosed) {
				fmt.Println(node.Server, "did not say yes:", node.Err)
			}
		}
	}
	// Output:
	// needed: 2
	// master-2 did not say yes: lock client closed
	// master-3 did not say yes: lock client closed
}
