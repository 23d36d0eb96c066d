package rlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/rueidis"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

// Shop stands for a program that uses locks.
type Shop struct{ locks *rlock.Client }

var errBusy = errors.New("somebody else ships this order")

// Ship does nothing twice at the same time for one order.
func (s Shop) Ship(ctx context.Context, order string, pack func(context.Context) error) error {
	lock := s.locks.NewLock("order:" + order)
	err := rlock.Do(ctx, lock, rlock.NoWait, rlock.Watchdog, pack)
	if errors.Is(err, rlock.ErrNotRun) && errors.Is(err, rlock.ErrNotAcquired) {
		return errBusy
	}
	return err
}

func pack(context.Context) error { return nil }

// The server is in the process of the test. When the test ends, it fails if a lock was not
// released.
func ExampleNew() {
	t := begin() // the *testing.T of a test
	defer t.end()

	redis := rlocktest.New(t)
	shop := Shop{redis.Client()}
	fmt.Println(shop.Ship(t.Context(), "42", pack))
	// Output: <nil>
}

func ExampleRedis_Busy() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	shop := Shop{redis.Client()}
	free := redis.Busy("order:42")
	fmt.Println(shop.Ship(t.Context(), "42", pack))
	free()
	fmt.Println(shop.Ship(t.Context(), "42", pack))
	// Output:
	// somebody else ships this order
	// <nil>
}

func ExampleRedis_Lose() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	shop := Shop{redis.Client()}
	err := shop.Ship(t.Context(), "42", func(ctx context.Context) error {
		redis.Lose("order:42")
		<-ctx.Done() // the work notices
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, rlock.ErrLost))
	// Output: true
}

func ExampleRedis_Down() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	shop := Shop{redis.Client()}
	redis.Down()
	err := shop.Ship(t.Context(), "42", pack)
	fmt.Println(errors.Is(err, rlock.ErrNotRun), errors.Is(err, errBusy))
	redis.Up()
	fmt.Println(shop.Ship(t.Context(), "42", pack))
	// Output:
	// true false
	// <nil>
}

// A process has died while it held the lock: the lease runs out, and the order ships.
func ExampleRedis_BusyFor() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	shop := Shop{redis.Client()}
	redis.BusyFor("order:42", time.Hour)
	fmt.Println(shop.Ship(t.Context(), "42", pack))
	redis.Advance(time.Hour)
	fmt.Println(shop.Ship(t.Context(), "42", pack))
	// Output:
	// somebody else ships this order
	// <nil>
}

// The test learns without a sleep that the program waits.
func ExampleRedis_AwaitWaiter() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	free := redis.Busy("printer")
	printed := make(chan error)
	go func() {
		lock := redis.Client().NewLock("printer")
		printed <- rlock.Do(t.Context(), lock, rlock.Forever, rlock.Watchdog, pack)
	}()
	redis.AwaitWaiter("printer")
	free()
	fmt.Println(<-printed)
	// Output: <nil>
}

// The process was stopped for a minute: its lease, which nobody renewed, has run out.
func ExampleRedis_Advance() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	shop := Shop{redis.Client()}
	err := shop.Ship(t.Context(), "42", func(ctx context.Context) error {
		redis.Advance(time.Minute)
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, rlock.ErrLost))
	// Output: true
}

// The server seems to hang: what it has done is not known.
func ExampleRedis_Slow() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	client := redis.NewClient(rlock.Options{CommandTimeout: 20 * time.Millisecond})
	redis.Slow(time.Hour)
	_, err := client.NewLock("order:42").TryLock(t.Context(), rlock.NoWait, rlock.Watchdog)
	fmt.Println(errors.Is(err, rlock.ErrOutcomeUnknown))
	redis.Slow(0)
	// Output: true
}

// Two clients are two processes.
func ExampleRedis_NewClient() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	here := Shop{redis.Client()}
	there := Shop{redis.NewClient(rlock.Options{})}
	err := here.Ship(t.Context(), "42", func(context.Context) error {
		return there.Ship(t.Context(), "42", pack) // another process has another context
	})
	fmt.Println(err)
	// Output: somebody else ships this order
}

// A program that connects by itself is given the options of its connection.
func ExampleRedis_ClientOption() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	connection, err := rueidis.NewClient(redis.ClientOption())
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	client, err := rlock.New(connection, rlock.Options{})
	if err != nil {
		panic(err)
	}
	defer client.Close(t.Context())
	fmt.Println(Shop{client}.Ship(t.Context(), "42", pack))
	// Output: <nil>
}

// The program keeps the lock of its process until it ends.
func ExampleRedis_Allow() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	redis.Allow(rlocktest.Holds)
	hold, err := redis.Client().NewLock("leader").Lock(t.Context(), rlock.Lease(time.Minute))
	fmt.Println(hold.Name(), err)
	// Output: leader <nil>
}

// What a test leaves behind fails it.
func ExampleCheck() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	hold, err := redis.Client().NewLock("order:42").Lock(t.Context(), rlock.Lease(time.Minute))
	fmt.Println(hold.Name(), err)
	// Output:
	// order:42 <nil>
	// the test fails: true
}

// A waiter for one kind of lock is not woken by the release of another one.
func ExampleCheck_kinds() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	client := redis.Client()
	for _, lock := range []rlock.Locker{client.NewLock("order:42"), client.NewFairLock("order:42")} {
		hold, err := lock.Lock(t.Context(), rlock.Lease(time.Minute))
		if err == nil {
			err = hold.Unlock()
		}
		fmt.Println(lock.Name(), err)
	}
	// Output:
	// order:42 <nil>
	// order:42 <nil>
	// the test fails: true
}

// exampleTest is what an example has instead of a *testing.T.
type exampleTest struct {
	rehearsal
	ctx    context.Context
	cancel context.CancelFunc
}

func begin() *exampleTest {
	t := new(exampleTest)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

func (t *exampleTest) end() {
	t.cancel()
	t.rehearsal.end()
	if t.Failed() {
		fmt.Println("the test fails: true")
	}
}

func (t *exampleTest) Context() context.Context { return t.ctx }
func (t *exampleTest) Helper()                  {}
func (t *exampleTest) Log(...any)               {}
func (t *exampleTest) Output() io.Writer        { return io.Discard }
