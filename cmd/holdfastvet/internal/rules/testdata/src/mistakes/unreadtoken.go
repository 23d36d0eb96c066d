package mistakes

import (
	"context"
	"time"

	"example.com/shop"
	"holdfast/rlock"
)

// post pays for a token and writes without it.
func (a *app) post(ctx context.Context, order shop.Order) (err error) {
	hold, err := a.locks.NewFencedLock("ledger").Lock(ctx, rlock.Watchdog) // mistake: unreadtoken
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	return shop.Save(hold.Context(), order)
}

// append does the same with a variable.
func (a *app) append(ctx context.Context, order shop.Order) (err error) {
	ledger := a.locks.NewFencedLock("ledger:" + order.Customer)
	hold, err := ledger.TryLock(ctx, 5*time.Second, rlock.Watchdog) // mistake: unreadtoken
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	return shop.Save(hold.Context(), order)
}

// close asks for much, but not for the token.
func (a *app) close(ctx context.Context) (err error) {
	var ledger = a.locks.NewFencedLock("ledger")
	hold, err := ledger.Lock(ctx, time.Minute) // mistake: unreadtoken
	if err != nil {
		return err
	}
	defer func() { hold.UnlockTo(ctx, &err) }()
	if time.Until(hold.Deadline()) < time.Second || !hold.Valid() {
		return rlock.ErrLost
	}
	return shop.Save(hold.Context(), shop.Order{ID: hold.Name()})
}

// book cannot see the token.
func (a *app) book(ctx context.Context, order shop.Order) error {
	ledger := a.locks.NewFencedLock("ledger")
	return rlock.Do(ctx, ledger, time.Second, rlock.Watchdog, // mistake: unreadtoken
		func(ctx context.Context) error { return shop.Save(ctx, order) })
}

// read cannot either.
func (a *app) read(ctx context.Context, id string) (shop.Order, error) {
	return rlock.With(ctx, a.locks.NewFencedLock("ledger"), time.Second, rlock.Watchdog, // mistake: unreadtoken
		func(ctx context.Context) (shop.Order, error) { return shop.Load(ctx, id) })
}
