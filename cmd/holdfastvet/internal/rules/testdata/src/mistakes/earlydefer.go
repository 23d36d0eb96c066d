package mistakes

import (
	"context"
	"log"
	"time"

	"example.com/shop"
	"holdfast/multilock"
	"holdfast/rlock"
)

// ship defers as with a file of which one is sure.
func (a *app) ship(ctx context.Context) (err error) {
	hold, err := a.locks.NewLock("dock").Lock(ctx, rlock.Watchdog)
	defer hold.UnlockTo(ctx, &err) // mistake: earlydefer
	if err != nil {
		return err
	}
	shop.Ship(hold.Context())
	return nil
}

// transfer does the same with a literal.
func (a *app) transfer(ctx context.Context, from, to string) (err error) {
	hold, err := multilock.NewOn(a.locks, from, to).TryLock(ctx, time.Second, rlock.Watchdog)
	defer func() { // mistake: earlydefer
		if e := hold.Unlock(ctx); e != nil {
			log.Print(e)
		}
	}()
	if err != nil {
		return err
	}
	return shop.Bill(hold.Context(), shop.Order{})
}

// count ignores the error altogether.
func (a *app) count(ctx context.Context) (n int, err error) {
	hold, _ := a.locks.NewReadWriteLock("stock").Read().Lock(ctx, time.Minute)
	defer hold.UnlockTo(ctx, &err) // mistake: earlydefer
	return len(stock), nil
}

// pack looks at the error when the work is done.
func (a *app) pack(ctx context.Context, order shop.Order) (err error) {
	hold, err := a.locks.NewLock("order:"+order.ID).TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	defer hold.UnlockTo(ctx, &err) // mistake: earlydefer
	if e := shop.Pack(order); e != nil {
		return e
	}
	return err
}

// maybe works only with the lock, but releases without it, too.
func (a *app) maybe(ctx context.Context) {
	hold, err := a.locks.NewLock("dock").TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	defer func() { _ = hold.Unlock(ctx) }() // mistake: earlydefer
	if err == nil {
		shop.Ship(hold.Context())
	}
}
