package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/rlock"
)

func ExampleHold_Extend() {
	client, disconnect := connect()
	defer disconnect()
	ctx := context.Background()

	hold, err := client.NewLock("report").Lock(ctx, 10*time.Second)
	if err != nil {
		panic(err)
	}
	// The work takes longer than expected.
	if err := hold.Extend(ctx, time.Minute); err != nil {
		panic(err)
	}
	fmt.Println("more than ten seconds are left:", time.Until(hold.Deadline()) > 10*time.Second)
	fmt.Println("error:", hold.Unlock(ctx))
	// Output:
	// more than ten seconds are left: true
	// error: <nil>
}

// paper is a lock for tests of code that uses locks: it excludes nobody.
type paper struct {
	name string
	end  func(reason error)
}

func (p *paper) Lock(ctx context.Context, _ time.Duration) (*rlock.Hold, error) {
	hold, end := rlock.NewHold(ctx, p)
	p.end = end
	return hold, nil
}

func (p *paper) TryLock(ctx context.Context, _, lease time.Duration) (*rlock.Hold, error) {
	return p.Lock(ctx, lease)
}

func (p *paper) Unlock(context.Context) error { return rlock.ErrNotHeld }

func (p *paper) Name() string                                { return p.name }
func (p *paper) Owner() string                               { return "the test" }
func (p *paper) Token() int64                                { return 0 }
func (p *paper) Deadline() time.Time                         { return time.Now().Add(time.Hour) }
func (p *paper) Extend(context.Context, time.Duration) error { return nil }

func (p *paper) Release(*rlock.Hold) error {
	p.end(rlock.ErrReleased)
	return nil
}

func ExampleNewHold() {
	lock := &paper{name: "printer"}
	hold, err := lock.Lock(context.Background(), rlock.Watchdog)
	if err != nil {
		panic(err)
	}
	// What does the code under test do if it loses the lock?
	lock.end(&rlock.LostError{Lock: "printer", Reason: errors.New("the test says so")})
	fmt.Println(context.Cause(hold.Context()))
	// Output:
	// holdfast: lock "printer" lost: the test says so
}
