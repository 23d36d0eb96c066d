package rlock_test

import (
	"context"
	"errors"
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

// The outcome of Do says whether the function ran.
func ExampleDo_notRun() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("order:42")
	somebody, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}

	err = rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog,
		func(context.Context) error { panic("not reached") })
	switch {
	case errors.Is(err, rlock.ErrNotRun) && errors.Is(err, rlock.ErrNotAcquired):
		fmt.Println("busy: try again later")
	case errors.Is(err, rlock.ErrNotRun):
		fmt.Println("Redis refused, or did not reply:", err)
	case err != nil:
		fmt.Println("the function failed, or the lock was lost:", err)
	}
	_ = somebody.Unlock(ctx)
	// Output: busy: try again later
}
