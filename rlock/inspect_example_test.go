package rlock_test

import (
	"context"
	"fmt"

	"holdfast/rlock"
)

func ExampleLock_Info() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("order:42")
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}

	info, err := lock.Info(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(info.Name, info.Locked, info.Owner == hold.Owner(), info.Count)
	_ = hold.Unlock(ctx)
	// Output: order:42 true true 1
}

func ExampleLock_IsHeld() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("order:42")
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}

	mine, _ := lock.IsHeld(hold.Context())
	others, _ := lock.IsHeld(rlock.WithOwner(ctx))
	fmt.Println(mine, others)
	_ = hold.Unlock(ctx)
	// Output: true false
}
