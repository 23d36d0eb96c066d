package rlock_test

import (
	"context"
	"fmt"
	"time"

	"holdfast/rlock"
)

func ExampleWith() {
	client, disconnect := connect()
	defer disconnect()

	left, err := rlock.With(context.Background(), client.NewLock("stock:42"), 3*time.Second,
		rlock.Watchdog, func(ctx context.Context) (int, error) {
			return 7, ctx.Err() // ctx ends when the lock is lost
		})
	fmt.Println(left, err)
	// Output: 7 <nil>
}
