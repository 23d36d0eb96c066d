package rlock_test

import (
	"context"
	"fmt"
	"time"

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

func ExampleLock_IsLocked() {
	client, disconnect := connect()
	defer disconnect()
	locked, err := client.NewLock("order:42").IsLocked(context.Background())
	fmt.Println(locked, err)
	// Output: false <nil>
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

func ExampleLock_HoldCount() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")
	ctx := rlock.WithOwner(context.Background())
	for range 3 {
		if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
			panic(err)
		}
	}
	count, err := lock.HoldCount(ctx)
	fmt.Println(count, err)
	// Output: 3 <nil>
}

func ExampleLock_TTL() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("order:42")
	hold, err := lock.TryLock(ctx, rlock.NoWait, time.Minute)
	if err != nil {
		panic(err)
	}

	left, err := lock.TTL(ctx)
	fmt.Println(left.Round(time.Minute), err)
	_ = hold.Unlock(ctx)
	// Output: 1m0s <nil>
}
