package lua_test

import (
	"context"
	"fmt"
	"time"

	"holdfast/lua"
)

// Two of three nodes are a majority. On a real Redis set lua.Delay.For to the longest lease, unless
// all nodes write each command to disk before they reply.
func ExampleAcquireVote() {
	ctx := context.Background()
	votes := map[string]int{}
	for _, order := range [][]string{
		{"client:1", "client:2"}, {"client:1", "client:2"}, {"client:2", "client:1"},
	} {
		node, disconnect := connect()
		defer disconnect()
		for _, owner := range order {
			vote, err := lua.AcquireVote(ctx, node, "order:42", owner, 30*time.Second, lua.Delay{})
			if err != nil {
				panic(err)
			}
			if vote.Granted {
				votes[owner]++
			} else {
				fmt.Println("too late, after", vote.Holder.Owner)
			}
		}
	}
	fmt.Println(votes)
	// Output:
	// too late, after client:1
	// too late, after client:1
	// too late, after client:2
	// map[client:1:2 client:2:1]
}
