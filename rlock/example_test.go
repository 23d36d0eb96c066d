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
	server := must(miniredis.Run())
	redis := must(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, AlwaysRESP2: true, DisableCache: true}))
	options.Logger = slog.New(slog.DiscardHandler)
	client = must(rlock.New(redis, options))
	return client, func() {
		_ = client.Close(context.Background())
		redis.Close()
		server.Close()
	}
}

// must returns the value of a call that cannot fail here.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func ExampleNew() {
	server := must(miniredis.Run()) // in place of a Redis server
	defer server.Close()

	redis := must(rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()},
		AlwaysRESP2: true, DisableCache: true, // for miniredis only
	}))
	defer redis.Close()

	client := must(rlock.New(redis, rlock.Options{WatchdogLease: 10 * time.Second}))
	defer client.Close(context.Background())

	hold := must(client.NewLock("order:42").Lock(context.Background(), rlock.Watchdog))
	fmt.Println("held:", hold.Name())
	fmt.Println("error:", hold.Unlock())
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
		defer hold.UnlockTo(&err) // a loss of the lock becomes the error of ship
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

	hold := must(lock.TryLock(ctx, 3*time.Second, rlock.Lease(30*time.Second))) // wait, lease

	// Another caller does not want to wait at all.
	_, err := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(30*time.Second))
	var held *rlock.HeldError
	if errors.As(err, &held) {
		fmt.Println("held by the first:", held.Owner == hold.Owner())
		fmt.Println("for more than 20 s still:", held.TTL > 20*time.Second)
	}
	fmt.Println("error:", hold.Unlock())
	// Output:
	// held by the first: true
	// for more than 20 s still: true
	// error: <nil>
}

func ExampleHold_Unlock() {
	client, disconnect := connect()
	defer disconnect()
	ctx, cancel := context.WithCancel(context.Background())

	hold := must(client.NewLock("order:42").Lock(ctx, rlock.Watchdog))
	cancel() // Unlock works nevertheless
	fmt.Println(hold.Unlock())
	fmt.Println(hold.Unlock())
	// Output:
	// <nil>
	// holdfast: lock "order:42": lock not held: this hold is already released
}

func ExampleHold_Context() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewLock("order:42")

	// The context ends when the lock is lost, and carries the owner.
	outer := must(lock.Lock(ctx, rlock.Watchdog))
	// So functions that get it can take the lock again.
	inner := must(lock.Lock(outer.Context(), rlock.Watchdog))
	fmt.Println("same owner:", outer.Owner() == inner.Owner())
	_ = inner.Unlock()
	_ = outer.Unlock()
	fmt.Println(context.Cause(outer.Context()))
	// Output:
	// same owner: true
	// lock released
}

func ExampleHold_Valid() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	hold := must(client.NewLock("order:42").TryLock(ctx, rlock.NoWait, rlock.Lease(3*time.Second)))
	fmt.Println("may write:", hold.Valid())
	<-hold.Done() // the lease ends without renewal
	fmt.Println("may write:", hold.Valid())
	fmt.Println(errors.Is(hold.Unlock(), rlock.ErrLost))
	// Output:
	// may write: true
	// may write: false
	// true
}

func ExampleHold_Done() {
	client, disconnect := connect()
	defer disconnect()

	// A process that leads keeps the lock until it stops, or until it loses the lock.
	hold := must(client.NewLock("leader").Lock(context.Background(), rlock.Watchdog))
	stopped := make(chan error)
	go func() { stopped <- hold.Unlock() }() // as when the process receives a signal to stop
	<-hold.Done()
	fmt.Println("no longer the leader:", hold.Err())
	<-stopped
	// Output: no longer the leader: lock released
}

func ExampleWithOwner() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")

	// Both calls have the same owner, although the second does not have the context of the hold.
	ctx := rlock.WithOwner(context.Background())
	outer := must(lock.Lock(ctx, rlock.Watchdog))
	inner := must(lock.Lock(ctx, rlock.Watchdog))
	fmt.Println("same owner:", inner.Owner() == outer.Owner())

	// A new owner has to wait.
	_, err := lock.TryLock(rlock.WithOwner(ctx), rlock.NoWait, rlock.Watchdog)
	fmt.Println("held by another owner:", errors.Is(err, rlock.ErrNotAcquired))
	fmt.Println(errors.Join(inner.Unlock(), outer.Unlock()))
	// Output:
	// same owner: true
	// held by another owner: true
	// <nil>
}

func ExampleWithGrace() {
	client, disconnect := connect()
	defer disconnect()
	stop, sigterm := context.WithCancel(context.Background()) // as from signal.NotifyContext

	rows := []string{"a", "b", "c"}
	err := rlock.Do(rlock.WithGrace(stop, 10*time.Second), client.NewLock("batch"), time.Second,
		rlock.Watchdog, func(ctx context.Context) error {
			for _, row := range rows {
				if stop.Err() != nil {
					return errors.New("stopped before row " + row)
				}
				if row == "b" {
					sigterm()
				}
				// This row is finished under the lock, unless it takes more than 10 s.
				fmt.Println("writes", row, ctx.Err())
			}
			return nil
		})
	fmt.Println(err)
	// Output:
	// writes a <nil>
	// writes b <nil>
	// stopped before row c
}

func ExampleLock_Unlock() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")

	// Code ported from Java has no hold at hand. The owner in the context stands for the thread.
	ctx := rlock.WithOwner(context.Background())
	must(lock.Lock(ctx, rlock.Watchdog))
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
	hold := must(lock.Lock(ctx, rlock.Watchdog))

	held, err := lock.ForceUnlock(ctx)
	fmt.Println(held, err)
	fmt.Println(hold.Err())
	// Output:
	// true <nil>
	// holdfast: lock "order:42": lost: force-unlocked
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

func ExampleClient_Close() {
	client, disconnect := connect()
	defer disconnect()
	lock := client.NewLock("order:42")
	hold := must(lock.Lock(context.Background(), rlock.Watchdog))

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println("close:", client.Close(ctx))
	fmt.Println("hold:", hold.Err()) // no longer renewed
	fmt.Println("unlock:", hold.Unlock())
	_, err := lock.Lock(ctx, rlock.Watchdog)
	fmt.Println(errors.Is(err, rlock.ErrClosed))
	// Output:
	// close: <nil>
	// hold: lock client closed
	// unlock: <nil>
	// true
}

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

func ExampleHold_Extend() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	hold := must(client.NewLock("report").Lock(ctx, rlock.Lease(10*time.Second)))
	fmt.Println(
		"error:",
		hold.Extend(ctx, rlock.Lease(time.Minute)),
	) // the work takes longer than expected
	fmt.Println("more than ten seconds are left:", time.Until(hold.Deadline()) > 10*time.Second)
	_ = hold.Unlock()
	// Output:
	// error: <nil>
	// more than ten seconds are left: true
}

// paper is a lock for tests of code that uses locks: it excludes nobody.
type paper struct{ end func(reason error) }

func (p *paper) Name() string                              { return "printer" }
func (p *paper) Owner() string                             { return "the test" }
func (p *paper) Token() int64                              { return 0 }
func (p *paper) Deadline() time.Time                       { return time.Now().Add(time.Hour) }
func (p *paper) Extend(context.Context, rlock.Lease) error { return nil }

func (p *paper) Release(*rlock.Hold) error {
	p.end(rlock.ErrReleased)
	return nil
}

func ExampleNewHold() {
	lock := new(paper)
	hold, end := rlock.NewHold(context.Background(), lock)
	lock.end = end
	// What does the code under test do if it loses the lock?
	end(&rlock.LostError{Lock: "printer", Reason: errors.New("the test says so")})
	fmt.Println(context.Cause(hold.Context()))
	// Output: holdfast: lock "printer": lost: the test says so
}

func ExampleHold_Token() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()
	lock := client.NewFencedLock("ledger")

	// What the lock guards remembers the largest token that it has seen, and refuses smaller ones. A
	// database does so in the transaction of the write itself:
	//
	//	UPDATE ledger SET entry = $1, token = $2 WHERE token <= $2
	var seen int64
	write := func(hold *rlock.Hold) string {
		if hold.Token() < seen {
			return fmt.Sprintf("stale token: %d, after %d", hold.Token(), seen)
		}
		seen = hold.Token()
		return "written"
	}
	first := must(lock.Lock(ctx, rlock.Watchdog))
	fmt.Println("first:", write(first))

	// The first process is stopped for longer than its lease, and does not know it yet. The lock
	// looks like this then.
	must(lock.ForceUnlock(ctx))
	second := must(lock.Lock(ctx, rlock.Watchdog))
	fmt.Println("second:", write(second))

	// It resumes, with a write that was on its way.
	fmt.Println("first:", write(first))
	_ = second.Unlock()
	// Output:
	// first: written
	// second: written
	// first: stale token: 1, after 2
}
