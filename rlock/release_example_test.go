package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/rlock"
)

func ExampleHold_UnlockTo() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")

	ship := func(ctx context.Context) (err error) { // UnlockTo needs the name of the result
		hold, err := lock.Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		defer hold.UnlockTo(ctx, &err)
		_, err = lock.ForceUnlock(ctx) // an operator frees the lock meanwhile
		return err
	}
	err := ship(context.Background())
	fmt.Println("shipped under the lock:", !errors.Is(err, rlock.ErrLost))
	// Output: shipped under the lock: false
}

// A report may be made once an hour, by whichever process is first.
func ExampleHold_Leave() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("report")

	hold, err := lock.TryLock(ctx, rlock.NoWait, time.Hour)
	if err != nil {
		panic(err)
	}
	hold.Leave()
	fmt.Println("the hold:", hold.Err())

	_, err = lock.TryLock(ctx, rlock.NoWait, time.Hour)
	fmt.Println("again within the hour:", !errors.Is(err, rlock.ErrNotAcquired))
	// Output:
	// the hold: lock released
	// again within the hour: false
}

// A booking is made in one request and paid for in another, maybe in another process.
func ExampleHold_Detach() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("seat:42")

	hold, err := lock.Lock(ctx, 10*time.Minute)
	if err != nil {
		panic(err)
	}
	booking, err := hold.Detach() // a text to be kept in the user's session
	if err != nil {
		panic(err)
	}
	locked, err := lock.IsLocked(ctx)
	fmt.Println("locked between the requests:", locked, err)

	hold, err = client.Attach(ctx, booking, time.Minute)
	if err != nil {
		panic(err)
	}
	fmt.Println("released after the second:", hold.Unlock(ctx))
	// Output:
	// locked between the requests: true <nil>
	// released after the second: <nil>
}
