package unlockerror

import (
	"context"
	"errors"

	"example.com/shop"
	"holdfast/rlock"
)

func namedResult(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx) // want `the error of hold.Unlock is dropped; nobody hears that the lock was lost during the work; write defer hold.UnlockTo\(ctx, &err\)`
	return shop.Bill(hold.Context(), shop.Order{})
}

func otherName(ctx context.Context, lock rlock.Locker) (n int, failure error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return 0, err
	}
	defer hold.Unlock(context.Background()) // want `write defer hold.UnlockTo\(ctx, &failure\)`
	return 1, shop.Bill(hold.Context(), shop.Order{})
}

func shadowed(ctx context.Context, locks []rlock.Locker) (err error) {
	for _, lock := range locks {
		hold, err := lock.Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		defer hold.Unlock(ctx) // want `the error of hold.Unlock is dropped; .* return the error`
	}
	return nil
}

func unnamedResult(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx) // want `the error of hold.Unlock is dropped; .* return the error, as defer`
	return shop.Bill(hold.Context(), shop.Order{})
}

func statement(ctx context.Context, hold *rlock.Hold, lock *rlock.Lock) {
	hold.Unlock(ctx)    // want `the error of hold.Unlock is dropped`
	lock.Unlock(ctx)    // want `the error of lock.Unlock is dropped; .* return the error, or write _ =`
	go hold.Unlock(ctx) // want `the error of hold.Unlock is dropped`
	defer func() {
		hold.Unlock(ctx) // want `the error of hold.Unlock is dropped`
	}()
}

func literal(ctx context.Context, hold *rlock.Hold) (err error) {
	f := func() {
		defer hold.Unlock(ctx) // want `the error of hold.Unlock is dropped; .* return the error`
	}
	f()
	return nil
}

// What follows is right.

func joined(ctx context.Context, hold *rlock.Hold, lock *rlock.Lock) (err error) {
	defer hold.UnlockTo(ctx, &err)
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	defer func() { _ = hold.Unlock(ctx) }()
	if err := lock.Unlock(ctx); err != nil {
		return err
	}
	_ = lock.Unlock(ctx)
	hold.Leave()
	mu := rlock.AsSyncLocker(ctx, lock, rlock.Watchdog)
	mu.Lock()
	defer mu.Unlock()
	return hold.Unlock(ctx)
}
