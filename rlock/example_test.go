package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/rlock"
)

// connect stands for what a program does when it starts. Here the server is inside the program, so
// that the examples run anywhere. It does not speak all of RESP3; a real Redis needs neither of the
// last two options.
func connect() (client *rlock.Client, disconnect func()) { return connectWith(rlock.Options{}) }

// connectWith is connect with options.
func connectWith(options rlock.Options) (client *rlock.Client, disconnect func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	redis, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  []string{server.Addr()},
		AlwaysRESP2:  true,
		DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	options.Logger = slog.New(slog.DiscardHandler)
	client, err = rlock.New(redis, options)
	if err != nil {
		panic(err)
	}
	return client, func() {
		_ = client.Close(context.Background())
		redis.Close()
		server.Close()
	}
}

func ExampleNew() {
	server := miniredis.NewMiniRedis() // in place of a Redis server
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer server.Close()

	redis, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  []string{server.Addr()},
		AlwaysRESP2:  true, // these two for miniredis only
		DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	defer redis.Close()

	client, err := rlock.New(redis, rlock.Options{WatchdogLease: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	defer client.Close(context.Background())

	hold, err := client.NewLock("order:42").Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	fmt.Println("held:", hold.Name())
	fmt.Println("error:", hold.Unlock(context.Background()))
	// Output:
	// held: order:42
	// error: <nil>
}

func ExampleLock_Lock() {
	client, disconnect := connect()
	defer disconnect()

	ship := func(ctx context.Context, order string) (err error) {
		// Lock waits until the context ends, so give it a deadline.
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		hold, err := client.NewLock(order).Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		defer hold.UnlockTo(ctx, &err) // a loss of the lock becomes the error of ship
		fmt.Println("work on", hold.Name())
		return nil
	}
	fmt.Println("error:", ship(context.Background(), "order:42"))
	// Output:
	// work on order:42
	// error: <nil>
}

func ExampleLock_TryLock() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("order:42")

	hold, err := lock.TryLock(ctx, 3*time.Second, 30*time.Second) // wait, lease
	if err != nil {
		panic(err)
	}

	// Another caller does not want to wait that long.
	_, err = lock.TryLock(ctx, time.Second, 30*time.Second)
	var held *rlock.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by the first:", held.Owner == hold.Owner())
		fmt.Println("for more than 20 s still:", held.TTL > 20*time.Second)
	}
	fmt.Println("error:", hold.Unlock(ctx))
	// Output:
	// held by the first: true
	// for more than 20 s still: true
	// error: <nil>
}

func ExampleHold_Unlock() {
	client, disconnect := connect()
	defer disconnect()
	ctx, cancel := context.WithCancel(context.Background())

	hold, err := client.NewLock("order:42").Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	cancel() // Unlock works nevertheless
	fmt.Println(hold.Unlock(ctx))
	fmt.Println(hold.Unlock(ctx))
	// Output:
	// <nil>
	// holdfast: lock "order:42": lock not held: this hold was released before
}

func ExampleHold_Context() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("order:42")

	// The context ends when the lock is lost, and carries the owner.
	outer, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	// So functions that get it can take the lock again.
	inner, err := lock.Lock(outer.Context(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	fmt.Println("same owner:", outer.Owner() == inner.Owner())
	_ = inner.Unlock(ctx)
	_ = outer.Unlock(ctx)
	fmt.Println(context.Cause(outer.Context()))
	// Output:
	// same owner: true
	// lock released
}

func ExampleHold_Valid() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	hold, err := client.NewLock("order:42").TryLock(ctx, rlock.NoWait, time.Second)
	if err != nil {
		panic(err)
	}
	fmt.Println("may write:", hold.Valid())
	<-hold.Done() // the lease ends without renewal
	fmt.Println("may write:", hold.Valid())
	fmt.Println(errors.Is(hold.Unlock(ctx), rlock.ErrLost))
	// Output:
	// may write: true
	// may write: false
	// true
}

func ExampleLock_Unlock() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")

	// Code ported from Java has no hold at hand. The owner in the context stands for the thread.
	ctx := rlock.WithOwner(context.Background())
	if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
		panic(err)
	}
	fmt.Println(lock.Unlock(ctx))
	fmt.Println(errors.Is(lock.Unlock(ctx), rlock.ErrNotHeld))
	// Output:
	// <nil>
	// true
}

func ExampleLock_ForceUnlock() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("order:42")
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}

	held, err := lock.ForceUnlock(ctx)
	fmt.Println(held, err)
	fmt.Println(hold.Err())
	// Output:
	// true <nil>
	// holdfast: lock "order:42" lost: force-unlocked
}

func ExampleDo() {
	client, disconnect := connect()
	defer disconnect()

	err := rlock.Do(context.Background(), client.NewLock("order:42"), 3*time.Second, rlock.Watchdog,
		func(ctx context.Context) error {
			fmt.Println("under the lock")
			return ctx.Err() // ctx ends when the lock is lost
		})
	fmt.Println(err)
	// Output:
	// under the lock
	// <nil>
}

func ExampleWithOwner() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")

	ctx := rlock.WithOwner(context.Background())
	_, err := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	fmt.Println("first:", err)
	_, err = lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	fmt.Println("again:", err)
	_, err = lock.TryLock(rlock.WithOwner(ctx), rlock.NoWait, rlock.Watchdog)
	fmt.Println("another owner gets it:", err == nil)
	// Output:
	// first: <nil>
	// again: <nil>
	// another owner gets it: false
}

func ExampleAsSyncLocker() {
	client, disconnect := connect()
	defer disconnect()

	locker := rlock.AsSyncLocker(context.Background(), client.NewLock("order:42"), rlock.Watchdog)
	locker.Lock()
	defer locker.Unlock()
	fmt.Println("under the lock")
	// Output: under the lock
}

func ExampleClient_Close() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")
	hold, err := lock.Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println("close:", client.Close(ctx))
	fmt.Println("hold:", hold.Err()) // no longer renewed
	fmt.Println("unlock:", hold.Unlock(ctx))
	_, err = lock.Lock(ctx, rlock.Watchdog)
	fmt.Println(errors.Is(err, rlock.ErrClosed))
	// Output:
	// close: <nil>
	// hold: lock client closed
	// unlock: <nil>
	// true
}
