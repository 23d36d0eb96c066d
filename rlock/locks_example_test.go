package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	fmt.Println("error:", hold.Unlock())
	// Output:
	// waiting: 0
	// error: <nil>
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
	_ = first.Unlock()
	_ = second.Unlock()
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
	_ = writing.Unlock() // lets other readers in, but no writer

	_, err = catalogue.Write().Lock(ctx, rlock.Watchdog)
	fmt.Println("and back again:", errors.Is(err, rlock.ErrUpgrade))
	fmt.Println("still reading:", reading.Valid())
	_ = reading.Unlock()
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
	_ = hold.Unlock()
	// Output: true
}

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
	_ = hold.Unlock()
	// Output: order:42 true true 1
}

// A middleware may run inside a section, and must not take its owner away.
func ExampleEnsureOwner() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")

	hold, err := lock.Lock(rlock.EnsureOwner(context.Background()), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	ctx := rlock.EnsureOwner(hold.Context()) // the same owner: the lock re-enters
	again, err := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	fmt.Println("same owner:", again.Owner() == hold.Owner())
	_ = again.Unlock()
	_ = hold.Unlock()
	// Output: same owner: true
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
	_ = hold.Unlock()
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
	_ = hold.Unlock()
	// Output: true
}

func ExampleHold_UnlockTo() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")

	ship := func(ctx context.Context) (err error) { // UnlockTo needs the name of the result
		hold, err := lock.Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		defer hold.UnlockTo(&err)
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

	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(time.Hour))
	if err != nil {
		panic(err)
	}
	hold.Leave()
	fmt.Println("the hold:", hold.Err())

	_, err = lock.TryLock(ctx, rlock.NoWait, rlock.Lease(time.Hour))
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

	hold, err := lock.Lock(ctx, rlock.Lease(10*time.Minute))
	if err != nil {
		panic(err)
	}
	booking, err := hold.Detach() // a text to be kept in the user's session
	if err != nil {
		panic(err)
	}
	locked, err := lock.IsLocked(ctx)
	fmt.Println("locked between the requests:", locked, err)

	hold, err = client.Attach(ctx, booking, rlock.Lease(time.Minute))
	if err != nil {
		panic(err)
	}
	fmt.Println("released after the second:", hold.Unlock())
	// Output:
	// locked between the requests: true <nil>
	// released after the second: <nil>
}

// A job that takes a moment would run once more on a machine whose clock is late.
func ExampleAtLeast() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := rlock.AtLeast(client.NewLock("nightly"), 10*time.Minute)

	job := func(context.Context) error {
		fmt.Println("the job runs")
		return nil
	}
	for range 2 { // on two machines
		err := rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog, job)
		fmt.Println("too early:", errors.Is(err, rlock.ErrNotAcquired))
	}
	// Output:
	// the job runs
	// too early: false
	// too early: true
}
