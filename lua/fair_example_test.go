package lua_test

import (
	"context"
	"fmt"
	"time"

	"holdfast/lua"
)

// A waiter is queued, and comes before owners that ask later, even if they find the lock free.
func ExampleFair_Acquire() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	fair := lua.Fair{Lock: "order:42", Counted: true}

	ask := func(owner string) {
		holder, err := fair.Acquire(
			ctx,
			client,
			lua.FairRequest{
				Owner:  owner,
				Count:  1,
				Lease:  30 * time.Second,
				Waits:  true,
				Window: 5 * time.Minute,
			},
		)
		switch {
		case err != nil:
			panic(err)
		case holder == nil:
			fmt.Println(owner, "has it")
		case holder.Next:
			fmt.Println(owner, "comes after", holder.Owner)
		default:
			fmt.Println(owner, "has to wait for", holder.Owner)
		}
	}
	ask("client:1")
	ask("client:2")
	ask("client:3")
	if _, err := fair.Release(ctx, client, 0, "client:1"); err != nil {
		panic(err)
	}
	ask("client:3")
	ask("client:2")
	// Output:
	// client:1 has it
	// client:2 has to wait for client:1
	// client:3 has to wait for client:1
	// client:3 comes after client:2
	// client:2 has it
}

// A waiter that gives up releases a lock that it does not hold, and so leaves the queue. The window
// is the one that it was queued with.
func ExampleFair_Release() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	fair := lua.Fair{Lock: "order:42", Counted: true}

	for _, owner := range []string{"client:1", "client:2", "client:3"} {
		request := lua.FairRequest{
			Owner: owner, Count: 1, Lease: 30 * time.Second, Waits: true, Window: time.Minute,
		}
		if _, err := fair.Acquire(ctx, client, request); err != nil {
			panic(err)
		}
	}
	released, err := fair.Release(ctx, client, 0, "client:2")
	fmt.Println(released.Held, err)
	state, err := lua.InspectFair(ctx, client, "order:42")
	fmt.Println(state.Queue, err)
	// Output:
	// false <nil>
	// [client:3] <nil>
}

func ExampleFair_ForceUnlock() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	fair := lua.Fair{Lock: "order:42", Counted: true}

	request := lua.FairRequest{
		Owner: "client:1", Count: 1, Lease: 30 * time.Second, Waits: false, Window: 0,
	}
	if _, err := fair.Acquire(ctx, client, request); err != nil {
		panic(err)
	}
	for range 2 {
		released, err := fair.ForceUnlock(ctx, client)
		fmt.Println(released.Held, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleInspectFair() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	fair := lua.Fair{Lock: "order:42", Counted: true}

	for _, owner := range []string{"client:1", "client:2", "client:3"} {
		request := lua.FairRequest{
			Owner: owner, Count: 1, Lease: 30 * time.Second, Waits: true, Window: time.Minute,
		}
		if _, err := fair.Acquire(ctx, client, request); err != nil {
			panic(err)
		}
	}
	state, err := lua.InspectFair(ctx, client, "order:42")
	fmt.Println(state.Holds, state.Queue, err)
	// Output: [{client:1 1 false}] [client:2 client:3] <nil>
}

func ExampleFairChannel() {
	fmt.Println(lua.FairChannel("order:42", "client:2"))
	// Output: redisson_lock__channel:{order:42}:client:2
}
