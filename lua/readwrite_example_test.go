package lua_test

import (
	"context"
	"fmt"
	"time"

	"holdfast/lua"
)

// Readers share the lock, and a writer waits for them. While it does, new readers step back for it.
func ExampleReadWrite_AcquireWrite() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	lock := lua.ReadWrite{Lock: "page:1", Bound: 30 * time.Second}
	_, err := lock.AcquireRead(ctx, client, "client:1", 1, 30*time.Second, true, false)
	if err != nil {
		panic(err)
	}
	holder, err := lock.AcquireWrite(ctx, client, "client:2", 1, 30*time.Second, true)
	if err != nil {
		panic(err)
	}
	fmt.Println("client:2 has to wait for", holder.Owner, "for", holder.TTL.Round(time.Second))
	holder, err = lock.AcquireRead(ctx, client, "client:3", 1, 30*time.Second, true, false)
	if err != nil {
		panic(err)
	}
	fmt.Println("client:3 has to wait for", holder.Owner, "which waits itself:", holder.Next)
	// Output:
	// client:2 has to wait for client:1 for 30s
	// client:3 has to wait for client:2 which waits itself: true
}

// A writer that reads as well keeps reading after it has released the write lock.
func ExampleReadWrite_ReleaseWrite() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	lock := lua.ReadWrite{Lock: "page:1"}
	if _, err := lock.AcquireWrite(ctx, client, "client:1", 1, 30*time.Second, true); err != nil {
		panic(err)
	}
	_, err := lock.AcquireRead(ctx, client, "client:1", 1, 30*time.Second, true, false)
	if err != nil {
		panic(err)
	}
	released, err := lock.ReleaseWrite(ctx, client, "client:1", 0, "", 0)
	fmt.Println("a reader now:", released.Reading, err)
	state, err := lua.Inspect(ctx, client, "page:1")
	fmt.Println(state.Mode, state.Holds, err)
	// Output:
	// a reader now: true <nil>
	// read [{client:1 1 false}] <nil>
}

// A level that is released leaves the others their leases. The counts are those to leave behind.
func ExampleReadWrite_ReleaseRead() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	lock := lua.ReadWrite{Lock: "page:1"}
	_, err := lock.AcquireRead(ctx, client, "client:1", 1, 10*time.Second, true, false)
	if err != nil {
		panic(err)
	}
	held := lua.Held{Lock: lock.Lock, Owner: "client:1", Read: true}
	if _, err := lua.Reenter(ctx, client, held, 2, 30*time.Second); err != nil {
		panic(err)
	}
	released, err := lock.ReleaseRead(ctx, client, "client:1", 1)
	fmt.Println("held:", released.Held, err)
	state, err := lua.Inspect(ctx, client, "page:1")
	fmt.Println(state.Holds, state.TTL.Round(time.Second), err)
	// Output:
	// held: true <nil>
	// [{client:1 1 false}] 30s <nil>
}

// Readers do not wait for each other.
func ExampleReadWrite_AcquireRead() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	lock := lua.ReadWrite{Lock: "page:1"}
	for _, owner := range []string{"client:1", "client:2"} {
		holder, err := lock.AcquireRead(ctx, client, owner, 1, 30*time.Second, false, false)
		fmt.Println(owner, "reads:", holder == nil, err)
	}
	// Output:
	// client:1 reads: true <nil>
	// client:2 reads: true <nil>
}

// Renewing one reader's lease does nothing for another reader that died.
func ExampleRenew_reads() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	lock := lua.ReadWrite{Lock: "page:1"}
	if _, err := lock.AcquireRead(ctx, client, "client:1", 1, time.Second, false, false); err != nil {
		panic(err)
	}
	held, err := lua.Renew(ctx, client, 30*time.Second, []lua.Held{
		{Lock: "page:1", Owner: "client:1", Read: true},
		{Lock: "page:1", Owner: "client:2", Read: true},
	})
	fmt.Println(held, err)
	// Output: [true false] <nil>
}

// Each mode frees only its own holds.
func ExampleReadWrite_ForceUnlock() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	lock := lua.ReadWrite{Lock: "page:1"}
	_, err := lock.AcquireRead(ctx, client, "client:1", 1, 30*time.Second, false, false)
	if err != nil {
		panic(err)
	}
	released, err := lock.ForceUnlock(ctx, client, "write")
	fmt.Println("of a writer:", released.Held, err)
	released, err = lock.ForceUnlock(ctx, client, "read")
	fmt.Println("of readers:", released.Held, err)
	// Output:
	// of a writer: false <nil>
	// of readers: true <nil>
}
