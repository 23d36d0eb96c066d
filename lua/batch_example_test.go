package lua_test

import (
	"context"
	"fmt"
	"time"

	"holdfast/lua"
)

// A caller that wants two accounts gets both or none, so none waits with one of them in hand.
func ExampleAcquireBatch() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	for _, transfer := range [][3]string{
		{"client:1", "account:7", "account:8"}, {"client:2", "account:9", "account:8"},
	} {
		owner, accounts := transfer[0], transfer[1:]
		var requests []lua.BatchPart
		for _, account := range accounts {
			requests = append(requests, lua.BatchPart{Lock: account, Owner: owner, Count: 1})
		}
		index, holder, err := lua.AcquireBatch(ctx, client, 30*time.Second, requests)
		switch {
		case err != nil:
			panic(err)
		case index == -1:
			fmt.Println(owner, "has", accounts)
		default:
			fmt.Println(owner, "has none, as", holder.Owner, "has", accounts[index])
		}
	}
	state, err := lua.Inspect(ctx, client, "account:9")
	fmt.Println(state.Holds, err)
	// Output:
	// client:1 has [account:7 account:8]
	// client:2 has none, as client:1 has account:8
	// [] <nil>
}

// Each release has its own outcome. Here the second lock was lost before.
func ExampleReleaseBatch() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	if _, err := lockPlain(ctx, client, "account:7", "client:1", 30*time.Second); err != nil {
		panic(err)
	}
	var releases []lua.BatchPart
	for _, account := range []string{"account:7", "account:8"} {
		releases = append(releases,
			lua.BatchPart{Lock: account, Channel: lua.Channel(account), Owner: "client:1"})
	}
	parts, err := lua.ReleaseBatch(ctx, client, lua.Classic, releases)
	if err != nil {
		panic(err)
	}
	for i, part := range parts {
		fmt.Println(releases[i].Lock, part.Held, part.Err)
	}
	// Output:
	// account:7 true <nil>
	// account:8 false <nil>
}
