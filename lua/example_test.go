package lua_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/lua"
)

// connect starts a server inside this process and connects to it, so that the examples run
// anywhere. A real Redis needs none of the last three options.
func connect() (client rueidis.Client, disconnect func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client, err = rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{server.Addr()},
		AlwaysRESP2:       true,
		DisableCache:      true,
		ForceSingleClient: true, // miniredis replies like a cluster of one node
	})
	if err != nil {
		panic(err)
	}
	return client, func() {
		client.Close()
		server.Close()
	}
}

// Two goroutines of one process: the one that releases the lock names its successor, and the reply
// is the successor's acquisition.
func ExampleExclusive() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := lua.NewExclusive("order:42", true)

	fence, _, _, err := lock.Acquire(ctx, client, "client:1", 30*time.Second, "")
	fmt.Println("client:1 has it, with the token", fence, err)

	next := lua.HandOver{
		Successor:      lock.Registration("client:2", 30*time.Second),
		SuccessorFirst: true,
	}
	released, err := lock.Release(ctx, client, "client:1", 0, next)
	fmt.Println("client:2 has it:", released.To == lua.Successor, "with the token", released.Fence,
		err)
	// Output:
	// client:1 has it, with the token 1 <nil>
	// client:2 has it: true with the token 2 <nil>
}
