package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast/redlock"
	"holdfast/rlock"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

func ExampleNew() {
	clients, disconnect := masters()
	defer disconnect()

	lock := redlock.New(
		clients[0].NewLock("order:42"), clients[1].NewLock("order:42"), clients[2].NewLock("order:42"),
	).WithOptions(durable)
	hold, err := lock.Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	fmt.Println("held:", hold.Name())
	fmt.Println("error:", hold.Unlock())
	// Output:
	// held: order:42
	// error: <nil>
}

func ExampleLock_TryLock() {
	clients, disconnect := masters()
	defer disconnect()
	ctx := context.Background()
	lock := redlock.NewOn("order:42", durable, clients...)

	hold, err := lock.TryLock(ctx, 3*time.Second, rlock.Lease(30*time.Second)) // wait, lease
	if err != nil {
		panic(err)
	}
	// The lease less one per cent and 2 ms, and less the time of the acquisition.
	fmt.Println("valid for 25 s still:", time.Until(hold.Deadline()) > 25*time.Second)

	// Another caller does not want to wait that long.
	_, err = lock.TryLock(ctx, time.Second, rlock.Lease(30*time.Second))
	fmt.Println("held by the first:", errors.Is(err, rlock.ErrNotAcquired))
	fmt.Println("error:", hold.Unlock())
	// Output:
	// valid for 25 s still: true
	// held by the first: true
	// error: <nil>
}

func ExampleLock_Unlock() {
	clients, disconnect := masters()
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
	clients, disconnect := masters()
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
	_ = hold.Unlock()
	// Output: true
}

// The error names the masters that need attention if there is no quorum.
func ExampleQuorumError() {
	clients, disconnect := masters()
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

// masters stands for what a program does when it starts: it makes a client for each of three
// masters. Here they are inside the program, so that the examples run anywhere. They do not speak
// all of RESP3; a real Redis needs neither of the last two options.
func masters() (clients []*rlock.Client, disconnect func()) {
	var undo []func()
	for i := range 3 {
		server, err := miniredis.Run()
		if err != nil {
			panic(err)
		}
		redis, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress:       []string{server.Addr()},
			ForceSingleClient: true, // a program must be able to start while some masters are down
			AlwaysRESP2:       true,
			DisableCache:      true,
		})
		if err != nil {
			panic(err)
		}
		client, err := rlock.New(redis, rlock.Options{Server: fmt.Sprintf("master-%d", i+1),
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			panic(err)
		}
		clients = append(clients, client)
		undo = append(undo,
			func() { _ = client.Close(context.Background()) }, redis.Close, server.Close)
	}
	return clients, func() {
		for _, f := range undo {
			f()
		}
	}
}

// durable states that the masters of the examples write each command to disk before they reply,
// which no master inside a program does. It also gives them time to reply on a machine that is busy
// with tests.
var durable = redlock.Options{FsyncAlways: true, NodeTimeout: 2 * time.Second}
