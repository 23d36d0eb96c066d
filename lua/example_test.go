package lua_test

import (
	"context"
	"errors"
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

func ExampleExclusive_Acquire() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := lua.NewExclusive("order:42", false)

	for _, owner := range []string{"client:1", "client:2"} {
		_, _, holder, err := lock.Acquire(ctx, client, owner, 30*time.Second, "")
		if err != nil {
			panic(err)
		}
		if holder == nil {
			fmt.Println(owner, "has it")
		} else {
			fmt.Println(owner, "has to wait for", holder.Owner, "for", holder.TTL.Round(time.Second))
		}
	}
	// Output:
	// client:1 has it
	// client:2 has to wait for client:1 for 30s
}

// The count is the one to leave behind. A second call, after a lost reply, counts nothing twice.
func ExampleReenter() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	if _, err := lockPlain(ctx, client, "order:42", "client:1", 30*time.Second); err != nil {
		panic(err)
	}
	for range 2 {
		held, err := lua.Reenter(ctx, client, lua.Held{Lock: "order:42", Owner: "client:1"}, 2,
			30*time.Second)
		fmt.Println(held, err)
	}
	state, err := lua.Inspect(ctx, client, "order:42")
	fmt.Println(state.Holds, err)
	// Output:
	// true <nil>
	// true <nil>
	// [{client:1 2 false}] <nil>
}

func ExampleExclusive_Release() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := lua.NewExclusive("order:42", false)

	if _, _, _, err := lock.Acquire(ctx, client, "client:1", 30*time.Second, ""); err != nil {
		panic(err)
	}
	for range 2 {
		released, err := lock.Release(ctx, client, "client:1", 0, lua.HandOver{})
		fmt.Println(released.Held, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleRenew() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	if _, err := lockPlain(ctx, client, "order:42", "client:1", time.Second); err != nil {
		panic(err)
	}
	held, err := lua.Renew(ctx, client, 30*time.Second, []lua.Held{
		{Lock: "order:42", Owner: "client:1"}, {Lock: "order:43", Owner: "client:1"},
	})
	fmt.Println(held, err)
	// Output: [true false] <nil>
}

func ExampleExclusive_ForceUnlock() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	if _, err := lockPlain(ctx, client, "order:42", "client:1", 30*time.Second); err != nil {
		panic(err)
	}
	released, err := lua.NewExclusive("order:42", false).ForceUnlock(ctx, client, lua.Classic)
	fmt.Println(released.Held, err)
	// Output: true <nil>
}

func ExampleInspect() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	state, err := lua.Inspect(ctx, client, "order:42")
	fmt.Println(len(state.Holds), state.TTL, err)

	if _, err := lockPlain(ctx, client, "order:42", "client:1", 30*time.Second); err != nil {
		panic(err)
	}
	state, err = lua.Inspect(ctx, client, "order:42")
	fmt.Println(state.Holds, state.TTL.Round(time.Second), err)
	// Output:
	// 0 0s <nil>
	// [{client:1 1 false}] 30s <nil>
}

func ExampleClassify() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	set := client.B().Set().Key("order:42").Value("a string").Build()
	if err := client.Do(ctx, set).Error(); err != nil {
		panic(err)
	}
	err := lua.Classify(client.Do(ctx, client.B().Hlen().Key("order:42").Build()).Error())
	var refusal *lua.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code, "is permanent:", refusal.Class == lua.ClassPermanent)
		fmt.Println(refusal.Advice)
	}
	// Output:
	// WRONGTYPE is permanent: true
	// a key of this name, or one that goes with it, is not a lock's: choose another name
}

func ExampleChannel() {
	fmt.Println(lua.Channel("order:42"))
	fmt.Println(lua.Channel("{order}:42"))
	// Output:
	// redisson_lock__channel:{order:42}
	// redisson_lock__channel:{order}:42
}

func ExampleCheckSlots() {
	for _, name := range []string{"{order}:42", "foo}bar"} {
		fmt.Println(name, lua.CheckSlots(name, lua.Channel(name)) != nil)
	}
	// Output:
	// {order}:42 false
	// foo}bar true
}
