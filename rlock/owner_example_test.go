package rlock_test

import (
	"context"
	"errors"
	"fmt"

	"holdfast/rlock"
)

// A middleware may run inside a section, and must not take its owner away.
func ExampleEnsureOwner() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")

	fresh := rlock.EnsureOwner(context.Background())
	fmt.Println("has an owner:", rlock.HasOwner(fresh))

	hold, err := lock.Lock(fresh, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	inside := rlock.EnsureOwner(hold.Context()) // the same owner: the lock re-enters
	again, err := lock.TryLock(inside, rlock.NoWait, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	fmt.Println("same owner:", again.Owner() == hold.Owner())
	_ = again.Unlock(inside)
	_ = hold.Unlock(fresh)
	// Output:
	// has an owner: true
	// same owner: true
}

func ExampleDetached() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")
	hold, err := lock.Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	ctx := hold.Context()

	// With ctx itself the goroutine would enter what its parent holds.
	done := make(chan error)
	go func() {
		_, err := lock.TryLock(rlock.Detached(ctx), rlock.NoWait, rlock.Watchdog)
		done <- err
	}()
	fmt.Println("kept out:", errors.Is(<-done, rlock.ErrNotAcquired))
	_ = hold.Unlock(ctx)
	// Output: kept out: true
}

// A caller that would wait for itself is told at once, and so are several in a circle.
func ExampleErrDeadlock() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")
	hold, err := lock.Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	ctx := hold.Context()

	// A new owner inside the section is a stranger to it.
	_, err = lock.Lock(rlock.WithOwner(ctx), rlock.Watchdog)
	fmt.Println(errors.Is(err, rlock.ErrDeadlock))
	_ = hold.Unlock(ctx)
	// Output: true
}
