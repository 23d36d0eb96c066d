package undeferred

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/shop"
	"holdfast/rlock"
)

type ownerContext interface {
	Ship(ctx context.Context) error
}

func works(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	err = shop.Bill(hold.Context(), shop.Order{})
	return errors.Join(err, hold.Unlock()) // want `the lock of line 18 is released without defer, so a panic in shop.Bill in line 22 leaves the lock held; write defer`
}

func inOneStatement(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	return errors.Join(shop.Bill(hold.Context(), shop.Order{}), hold.Unlock()) // want `without defer`
}

func byInterface(ctx context.Context, lock rlock.Locker, c ownerContext) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	err = c.Ship(hold.Context())
	hold.UnlockTo(&err) // want `so a panic in c.Ship in line 39`
	return err
}

func byValue(ctx context.Context, lock rlock.Locker, work func()) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	work()
	return hold.Unlock() // want `so a panic in work in line 49`
}

func explicit(ctx context.Context, lock rlock.Locker, n int) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	check(n)
	return hold.Unlock() // want `so a panic in check in line 58`
}

func check(n int) {
	if n == 0 {
		panic("no orders")
	}
}

func java(ctx context.Context, lock *rlock.Lock) error {
	ctx = rlock.WithOwner(ctx)
	if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
		return err
	}
	shop.Ship(ctx)
	return lock.Unlock(ctx) // want `the lock of line 70 is released without defer`
}

func perRound(ctx context.Context, locks []rlock.Locker) error {
	for _, lock := range locks {
		hold, err := lock.Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		shop.Ship(hold.Context())
		if err := hold.Unlock(); err != nil { // want `without defer`
			return err
		}
	}
	return nil
}

// What follows is right.

func deferred(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	if err := shop.Bill(hold.Context(), shop.Order{}); err != nil {
		return err
	}
	return hold.Unlock()
}

func deferredLiteral(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer func() { _ = hold.Unlock() }()
	shop.Ship(hold.Context())
	return nil
}

func nothingBetween(ctx context.Context, lock rlock.Locker, counts map[string]int) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	counts[strings.ToLower(hold.Name())]++
	fmt.Println(len(counts), label(hold.Name()), shop.Key(shop.Order{}))
	return hold.Unlock()
}

func label(name string) string { return "lock " + name }

type session struct{ hold *rlock.Hold }

func opened(ctx context.Context, lock rlock.Locker) (*session, error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return nil, err
	}
	if err := shop.Bill(hold.Context(), shop.Order{}); err != nil {
		return nil, errors.Join(err, hold.Unlock())
	}
	return &session{hold: hold}, nil
}

func left(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	shop.Ship(hold.Context())
	hold.Leave()
	return nil
}

func inBackground(ctx context.Context, lock rlock.Locker, work func()) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	go work()
	return hold.Unlock()
}

func afterRelease(ctx context.Context, lock rlock.Locker, work func()) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	if err := hold.Unlock(); err != nil {
		return err
	}
	work()
	return nil
}

func nested(ctx context.Context, a, b rlock.Locker) error {
	outer, err := a.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	inner, err := b.Lock(outer.Context(), rlock.Watchdog)
	if err != nil {
		return errors.Join(err, outer.Unlock())
	}
	return errors.Join(inner.Unlock(), outer.Unlock())
}
