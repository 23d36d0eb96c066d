package rlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"holdfast/rlock"
	"holdfast/rlocktest"
)

// Shop stands for a program that uses locks.
type Shop struct{ locks *rlock.Client }

var errBusy = errors.New("somebody else ships this order")

// Ship does nothing twice at the same time for one order.
func (s Shop) Ship(ctx context.Context, order string, pack func(context.Context) error) error {
	lock := s.locks.NewLock("order:" + order)
	err := rlock.Do(ctx, lock, 50*time.Millisecond, rlock.Watchdog, pack)
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

// What a test leaves behind fails it.
func ExampleCheck() {
	t := begin()
	defer t.end()

	redis := rlocktest.New(t)
	hold, err := redis.Client().NewLock("order:42").Lock(t.Context(), time.Minute)
	fmt.Println(hold.Name(), err)
	// Output:
	// order:42 <nil>
	// the test fails: true
}

// exampleTest is what an example has instead of a *testing.T.
type exampleTest struct {
	testing.TB
	ctx      context.Context
	cancel   context.CancelFunc
	cleanups []func()
	failed   bool
}

func begin() *exampleTest {
	t := new(exampleTest)
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

func (t *exampleTest) end() {
	t.cancel()
	for i := range t.cleanups {
		t.cleanups[len(t.cleanups)-1-i]()
	}
	if t.failed {
		fmt.Println("the test fails: true")
	}
}

func (t *exampleTest) Cleanup(f func())         { t.cleanups = append(t.cleanups, f) }
func (t *exampleTest) Context() context.Context { return t.ctx }
func (t *exampleTest) Error(...any)             { t.failed = true }
func (t *exampleTest) Failed() bool             { return t.failed }
func (t *exampleTest) Fatalf(string, ...any)    { t.failed = true }
func (t *exampleTest) Helper()                  {}
func (t *exampleTest) Log(...any)               {}
func (t *exampleTest) Output() io.Writer        { return io.Discard }
