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
	defer hold.Unlock() // want `the error of hold.Unlock is ignored, so a lost lock goes unnoticed; write defer hold.UnlockTo\(&err\)`
	return shop.Bill(hold.Context(), shop.Order{})
}

func otherName(ctx context.Context, lock rlock.Locker) (n int, failure error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return 0, err
	}
	defer hold.Unlock() // want `write defer hold.UnlockTo\(&failure\)`
	return 1, shop.Bill(hold.Context(), shop.Order{})
}

func shadowed(ctx context.Context, locks []rlock.Locker) (err error) {
	for _, lock := range locks {
		hold, err := lock.Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		defer hold.Unlock() // want `the error of hold.Unlock is ignored, .* rename the variable that hides the result err and write defer hold.UnlockTo\(&err\), or use rlock.Do`
	}
	return nil
}

func unnamedResult(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.Unlock() // want `the error of hold.Unlock is ignored, .* name the result \(err error\) and write defer hold.UnlockTo\(&err\), or use rlock.Do`
	return shop.Bill(hold.Context(), shop.Order{})
}

func statement(ctx context.Context, hold *rlock.Hold, lock *rlock.Lock) {
	hold.Unlock()    // want `the error of hold.Unlock is ignored`
	lock.Unlock(ctx) // want `the error of lock.Unlock is ignored, .* return the error, or assign it to _`
	go hold.Unlock() // want `the error of hold.Unlock is ignored`
	defer func() {
		hold.Unlock() // want `the error of hold.Unlock is ignored`
	}()
}

func literal(ctx context.Context, hold *rlock.Hold) (err error) {
	f := func() {
		defer hold.Unlock() // want `the error of hold.Unlock is ignored, .* check the error in a deferred function`
	}
	f()
	return nil
}

func toUnnamed(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err) // want `&err is not a named result of this function, so the error of the release is lost; name the result \(err error\), or use rlock.Do`
	err = shop.Bill(hold.Context(), shop.Order{})
	return err
}

func toShadowed(ctx context.Context, locks []rlock.Locker) (err error) {
	for _, lock := range locks {
		hold, err := lock.Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		defer hold.UnlockTo(&err) // want `it hides the result err of line 76; rename one of the two, or use rlock.Do`
	}
	if hold, err := locks[0].Lock(ctx, rlock.Watchdog); err == nil {
		defer hold.UnlockTo((&err)) // want `&err is not a named result`
		return shop.Bill(hold.Context(), shop.Order{})
	}
	return nil
}

func toOther(ctx context.Context, lock rlock.Locker) (failure error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err) // want `&err is not a named result of this function, .*; write &failure, or use rlock.Do`
	return shop.Bill(hold.Context(), shop.Order{})
}

func toParameter(ctx context.Context, hold *rlock.Hold, err error) {
	defer hold.UnlockTo(&err) // want `check the error of hold.Unlock in a deferred function, or use rlock.Do`
}

func inDeferred(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer func() {
		if hold.Valid() {
			hold.UnlockTo(&err) // want `&err is not a named result of this function`
		}
	}()
	return shop.Bill(hold.Context(), shop.Order{})
}

func inLiteral(ctx context.Context, lock rlock.Locker) (err error) {
	return try(func() error {
		hold, err := lock.Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		defer hold.UnlockTo(&err) // want `&err is not a named result of this function`
		return shop.Bill(hold.Context(), shop.Order{})
	})
}

func overwritten(ctx context.Context, hold *rlock.Hold) (err error) {
	err = try(func() error {
		defer hold.UnlockTo(&err) // want `&err is not a named result of this function`
		return shop.Bill(hold.Context(), shop.Order{})
	})
	if err != nil {
		return err
	}
	return try(func() error {
		defer hold.UnlockTo(&err) // want `&err is not a named result of this function`
		return shop.Bill(hold.Context(), shop.Order{})
	})
}

func try(f func() error) error { return f() }

// What follows is right.

func notAtTheEnd(ctx context.Context, hold *rlock.Hold) error {
	var err error
	hold.UnlockTo(&err)
	return err
}

func read(ctx context.Context, hold *rlock.Hold) error {
	var err error
	defer func() {
		if err != nil {
			shop.Ship(ctx)
		}
	}()
	defer hold.UnlockTo(&err)
	return nil
}

func byAddress(ctx context.Context, hold *rlock.Hold) error {
	var err error
	defer note(&err)
	defer hold.UnlockTo(&err)
	return nil
}

func note(err *error) {}

func pointer(ctx context.Context, hold *rlock.Hold, err *error) { defer hold.UnlockTo(err) }

func captured(ctx context.Context, hold *rlock.Hold, run func(name string, f func())) error {
	var err error
	run("part", func() {
		defer hold.UnlockTo(&err)
		shop.Ship(ctx)
	})
	func() {
		defer hold.UnlockTo(&err)
	}()
	return err
}

func kept(ctx context.Context, hold *rlock.Hold, keep func(func()) (func(), error)) error {
	var err error
	var stop func()
	stop, err = keep(func() { defer hold.UnlockTo(&err) })
	if err != nil {
		return err
	}
	stop()
	return err
}

func deferredLiteral(ctx context.Context, hold *rlock.Hold) (n int, err error) {
	defer func() {
		defer hold.UnlockTo(&err)
		shop.Ship(ctx)
	}()
	return 1, try(func() (err error) {
		defer hold.UnlockTo(&err)
		return nil
	})
}

type attempt struct{ err error }

func (a *attempt) field(ctx context.Context, hold *rlock.Hold) { defer hold.UnlockTo(&a.err) }

func joined(ctx context.Context, hold *rlock.Hold, lock *rlock.Lock) (err error) {
	defer hold.UnlockTo(&err)
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	defer func() { _ = hold.Unlock() }()
	if err := lock.Unlock(ctx); err != nil {
		return err
	}
	_ = lock.Unlock(ctx)
	hold.Leave()
	return hold.Unlock()
}
