package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"holdfast/multilock"
	"holdfast/rlock"
)

// connect stands for what a program does when it starts. Here the server is inside the program, so
// that the examples run anywhere. It does not speak all of RESP3; a real Redis needs neither of the
// last two options.
func connect() (client *rlock.Client, disconnect func()) {
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
	client, err = rlock.New(redis, rlock.Options{Logger: slog.New(slog.DiscardHandler)})
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
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	// A transfer needs both accounts. A caller that names them the other way round may wait, but never
	// causes a deadlock.
	both := multilock.New(client.NewLock("account:42"), client.NewLock("account:17"))
	err := rlock.Do(ctx, both, 3*time.Second, rlock.Watchdog, func(ctx context.Context) error {
		fmt.Println("transfer under", both.Name())
		return ctx.Err()
	})
	fmt.Println("error:", err)
	// Output:
	// transfer under account:42+account:17
	// error: <nil>
}

func ExampleNewOn() {
	client, disconnect := connect()
	defer disconnect()

	both := multilock.NewOn(client, "account:42", "account:17")
	hold, err := both.Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	fmt.Println("held:", hold.Name())
	fmt.Println("error:", hold.Unlock())
	// Output:
	// held: account:42+account:17
	// error: <nil>
}

func ExampleLock_TryLock() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	somebody, err := client.NewLock("account:42").Lock(ctx, rlock.Watchdog)
	if err != nil {
		panic(err)
	}

	both := multilock.New(client.NewLock("account:17"), client.NewLock("account:42"))
	_, err = both.TryLock(ctx, rlock.NoWait, rlock.Lease(30*time.Second))
	var held *rlock.HeldError
	if errors.As(err, &held) {
		fmt.Println("in the way:", held.Lock)
	}
	locked, err := client.NewLock("account:17").IsLocked(ctx)
	fmt.Println("the other one is held:", locked, err)
	_ = somebody.Unlock()
	// Output:
	// in the way: account:42
	// the other one is held: false <nil>
}

func ExampleLock_Unlock() {
	client, disconnect := connect()
	defer disconnect()
	both := multilock.New(client.NewLock("account:17"), client.NewLock("account:42"))

	// For ported code that has no Hold at hand: the owner travels in the context.
	ctx := rlock.WithOwner(context.Background())
	if _, err := both.Lock(ctx, rlock.Watchdog); err != nil {
		panic(err)
	}
	fmt.Println("error:", both.Unlock(ctx))
	fmt.Println("not held any more:", errors.Is(both.Unlock(ctx), rlock.ErrNotHeld))
	// Output:
	// error: <nil>
	// not held any more: true
}
