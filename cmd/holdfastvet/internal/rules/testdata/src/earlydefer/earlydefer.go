package earlydefer

import (
	"context"
	"time"

	"example.com/shop"
	"holdfast/rlock"
)

func before(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	defer hold.UnlockTo(&err) // want `hold is released by defer before the error of lock.Lock is checked`
	if err != nil {
		return err
	}
	return shop.Bill(hold.Context(), shop.Order{})
}

func beforeWithComment(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.TryLock(ctx, time.Second, rlock.Lease(time.Minute))
	defer func() { // want `hold is released by defer before`
		_ = hold.Unlock()
	}()
	// Nobody waits for longer than a second.
	if nil != err {
		shop.User(ctx)
		return err
	}
	shop.Ship(hold.Context())
	return nil
}

func never(ctx context.Context, lock rlock.Locker) {
	hold, _ := lock.Lock(ctx, rlock.Watchdog)
	defer hold.Unlock() // want `hold is released by defer before`
	shop.Ship(hold.Context())
}

func late(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	defer hold.Unlock() // want `hold is released by defer before`
	shop.Ship(hold.Context())
	return err
}

func withElse(ctx context.Context, lock rlock.Locker) {
	var hold, err = lock.Lock(ctx, rlock.Watchdog)
	defer hold.Unlock() // want `hold is released by defer before`
	if err == nil {
		shop.Ship(hold.Context())
	}
}

// What follows is right.

func after(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func ifThere(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	defer func() {
		if hold != nil {
			_ = hold.Unlock()
		}
	}()
	return err
}

func ifNoError(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	defer func() {
		if err == nil {
			_ = hold.Unlock()
		}
	}()
	return err
}

func nilChecked(ctx context.Context, lock rlock.Locker) {
	hold, _ := lock.TryLock(ctx, rlock.NoWait, rlock.Lease(time.Second))
	if hold == nil {
		return
	}
	defer func() { _ = hold.Unlock() }()
}

func mustHave(ctx context.Context, lock rlock.Locker) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	check(err)
	defer func() { _ = hold.Unlock() }()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
