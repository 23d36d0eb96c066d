package lua_test

import (
	"context"
	"fmt"
	"time"

	"holdfast/lua"
)

// A call repeated after a lost reply gets the same number; the next acquisition gets a larger one.
func ExampleExclusive_Acquire_fenced() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := lua.NewExclusive("order:42", true)

	for _, owner := range []string{"client:1", "client:1", "client:2"} {
		token, _, holder, err := lock.Acquire(ctx, client, owner, 30*time.Second, "")
		if err != nil {
			panic(err)
		}
		if holder == nil {
			fmt.Println(owner, "has it, with the token", token)
			continue
		}
		fmt.Println(owner, "has to wait for", holder.Owner)
		if _, err := lock.Release(ctx, client, holder.Owner, 0, lua.HandOver{}); err != nil {
			panic(err)
		}
		token, _, _, err = lock.Acquire(ctx, client, owner, 30*time.Second, "")
		fmt.Println(owner, "has it, with the token", token, err)
	}
	// Output:
	// client:1 has it, with the token 1
	// client:1 has it, with the token 1
	// client:2 has to wait for client:1
	// client:2 has it, with the token 2 <nil>
}

func ExampleInspectFenced() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	if _, _, err := lockFenced(ctx, client, "client:1", 30*time.Second); err != nil {
		panic(err)
	}
	state, err := lua.InspectFenced(ctx, client, "order:42")
	fmt.Println(state.Holds, state.Token, err)
	// Output: [{client:1 1 false}] 1 <nil>
}
