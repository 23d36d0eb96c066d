package mistakes

import (
	"context"
	"time"

	"example.com/shop"
	"holdfast/rlock"
)

// charge does not hear of a loss.
func (a *app) charge(ctx context.Context, order shop.Order) (err error) {
	hold, err := a.locks.NewLock("order:"+order.ID).Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.Unlock(ctx) // mistake: unlockerror
	return shop.Bill(hold.Context(), order)
}

// price neither, and has no named result.
func (a *app) price(ctx context.Context, id string) (shop.Order, error) {
	hold, err := a.locks.NewReadWriteLock("prices").Read().Lock(ctx, time.Minute)
	if err != nil {
		return shop.Order{}, err
	}
	defer hold.Unlock(ctx) // mistake: unlockerror
	return shop.Load(hold.Context(), id)
}

// bump releases by a statement.
func (a *app) bump(ctx context.Context, id string) error {
	hold, err := a.locks.NewLock(id).Lock(ctx, time.Minute)
	if err != nil {
		return err
	}
	stock[id]++
	hold.Unlock(ctx) // mistake: unlockerror
	return nil
}

// translate is as it was in Java, where unlock throws.
func (a *app) translate(ctx context.Context) error {
	ctx = rlock.WithOwner(ctx)
	if _, err := a.ledger.Lock(ctx, rlock.Watchdog); err != nil {
		return err
	}
	defer a.ledger.Unlock(ctx) // mistake: unlockerror
	return shop.Bill(ctx, shop.Order{})
}

// inspect drops it in a literal.
func (a *app) inspect(ctx context.Context) error {
	hold, err := a.locks.NewLock("stock").Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer func() {
		if hold.Valid() {
			hold.Unlock(ctx) // mistake: unlockerror
		}
	}()
	return shop.Bill(hold.Context(), shop.Order{})
}

// settleAll joins the errors to a variable that is not the result.
func (a *app) settleAll(ctx context.Context, orders []shop.Order) (err error) {
	for _, order := range orders {
		hold, err := a.locks.NewLock("order:"+order.ID).Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		defer hold.UnlockTo(ctx, &err) // mistake: unlockerror
		stock[order.ID]++
	}
	return nil
}

// restock thinks that return err comes last.
func (a *app) restock(ctx context.Context, id string) error {
	hold, err := a.locks.NewLock(id).Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err) // mistake: unlockerror
	stock[id]++
	err = shop.Save(hold.Context(), shop.Order{ID: id})
	return err
}
