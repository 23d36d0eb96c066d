package rlock_test

import (
	"context"
	"errors"
	"fmt"

	"holdfast/rlock"
)

func ExampleClient_NewFairLock() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewFairLock("printer")

	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	// From now on callers of Lock are queued, and get the lock in their order.
	info, err := lock.Info(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("waiting:", len(info.Queue))
	fmt.Println("error:", hold.Unlock(ctx))
	// Output:
	// waiting: 0
	// error: <nil>
}

func ExampleClient_NewFencedLock() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewFencedLock("ledger")

	for range 2 {
		hold, err := lock.Lock(ctx, rlock.Watchdog)
		if err != nil {
			panic(err)
		}
		fmt.Println("token:", hold.Token())
		_ = hold.Unlock(ctx)
	}
	// Output:
	// token: 1
	// token: 2
}

func ExampleClient_NewReadWriteLock() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewReadWriteLock("catalogue")

	first, err := lock.Read().Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	second, err := lock.Read().Lock(ctx, rlock.Watchdog) // readers share it
	if err != nil {
		panic(err)
	}
	_, err = lock.Write().TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	fmt.Println("a writer must wait:", errors.Is(err, rlock.ErrNotAcquired))
	_ = first.Unlock(ctx)
	_ = second.Unlock(ctx)
	// Output: a writer must wait: true
}

// A writer becomes a reader. Both locks are acquired with one owner, not one with the context of
// the other's hold, which ends with it.
func ExampleReadWriteLock_Write() {
	client, disconnect := connect()
	defer disconnect()
	ctx := rlock.WithOwner(context.Background())
	catalogue := client.NewReadWriteLock("catalogue")

	writing, err := catalogue.Write().Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	reading, err := catalogue.Read().Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	_ = writing.Unlock(ctx) // lets other readers in, but no writer

	_, err = catalogue.Write().Lock(ctx, rlock.Watchdog)
	fmt.Println("and back again:", errors.Is(err, rlock.ErrUpgrade))
	fmt.Println("still reading:", reading.Valid())
	_ = reading.Unlock(ctx)
	// Output:
	// and back again: true
	// still reading: true
}

func ExampleClient_NewNonReentrantLock() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewNonReentrantLock("order:42")
	hold, err := lock.Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	ctx := hold.Context()

	_, err = lock.Lock(ctx, rlock.Watchdog) // a plain lock would re-enter
	fmt.Println(errors.Is(err, rlock.ErrReentry))
	_ = hold.Unlock(ctx)
	// Output: true
}
