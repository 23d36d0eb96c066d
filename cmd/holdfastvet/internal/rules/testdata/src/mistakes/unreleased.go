package mistakes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/shop"
	"example.com/web"
	"holdfast/rlock"
)

// renewIndex takes the throttle of an hour, and does not say that it is one.
func (a *app) renewIndex(ctx context.Context) error {
	_, err := a.locks.NewLock("index").TryLock(ctx, rlock.NoWait, time.Hour) // mistake: unreleased
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil
	}
	return err
}

// cancel forgets the lock where the order is not what it expects.
func (a *app) cancel(ctx context.Context, id string) error {
	hold, err := a.locks.NewLock("order:"+id).Lock(ctx, rlock.Watchdog) // mistake: unreleased
	if err != nil {
		return fmt.Errorf("cancel %s: %w", id, err)
	}
	if _, ok := stock[id]; !ok {
		return fmt.Errorf("no order %s", id)
	}
	delete(stock, id)
	return hold.Unlock(ctx)
}

var stock map[string]int

// checkout answers the request and forgets the lock.
func (a *app) checkout(w web.ResponseWriter, r *web.Request) {
	lock := a.locks.NewFairLock("cart:" + r.FormValue("cart"))
	hold, err := lock.TryLock(r.Context(), 2*time.Second, rlock.Watchdog) // mistake: unreleased
	switch {
	case errors.Is(err, rlock.ErrNotAcquired):
		web.Error(w, "busy", web.StatusConflict)
		return
	case err != nil:
		web.Error(w, err.Error(), web.StatusServiceUnavailable)
		return
	}
	if err := shop.Bill(hold.Context(), shop.Order{ID: r.FormValue("id")}); err != nil {
		web.Error(w, err.Error(), web.StatusInternalServerError)
	}
}

// sweep keeps the lock of each item that needs no work.
func (a *app) sweep(ctx context.Context, ids []string) error {
	for _, id := range ids {
		hold, err := a.locks.NewLock(id).TryLock(ctx, rlock.NoWait, 10*time.Second) // mistake: unreleased
		if err != nil {
			continue
		}
		if stock[id] > 0 {
			continue
		}
		delete(stock, id)
		if err := hold.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

// hold takes the lock for a caller who never sees it.
func (a *app) hold(ctx context.Context) {
	a.locks.NewLock("night").Lock(ctx, rlock.Watchdog) // mistake: unreleased
}

// lockItem is what the program calls instead of holdfast.
func (a *app) lockItem(ctx context.Context, id string) (*rlock.Hold, error) {
	hold, err := a.locks.NewLock("item:"+id).TryLock(ctx, time.Second, rlock.Watchdog)
	if err != nil {
		return nil, fmt.Errorf("item %s: %w", id, err)
	}
	return hold, nil
}

// rename does not see that lockItem gives something back.
func (a *app) rename(ctx context.Context, id, name string) error {
	if _, err := a.lockItem(ctx, id); err != nil { // mistake: unreleased
		return err
	}
	stock[name] = stock[id]
	return nil
}
