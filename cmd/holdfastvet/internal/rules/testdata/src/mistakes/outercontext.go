package mistakes

import (
	"context"
	"time"

	"example.com/shop"
	"example.com/web"
	"holdfast/rlock"
)

// refund goes on when the lock is lost.
func (a *app) refund(ctx context.Context, order shop.Order) (err error) {
	hold, err := a.locks.NewLock("order:"+order.ID).Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	return shop.Bill(ctx, order) // mistake: outercontext
}

// reserve locks what it holds already, as another owner, and waits for itself.
func (a *app) reserve(ctx context.Context, id string) (err error) {
	lock := a.locks.NewLock("order:" + id)
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	again, err := lock.Lock(ctx, rlock.Watchdog) // mistake: outercontext
	if err != nil {
		return err
	}
	defer again.UnlockTo(ctx, &err)
	stock[id]--
	return nil
}

// fetch asks another service with a context that never ends.
func (a *app) fetch(ctx context.Context, url string) (err error) {
	hold, err := a.ledger.TryLock(ctx, time.Second, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	request, err := web.NewRequestWithContext(context.Background(), web.MethodGet, url, nil) // mistake: outercontext
	if err != nil {
		return err
	}
	_, err = web.DefaultClient.Do(request)
	return err
}

// serve works with the request's context under the lock.
func (a *app) serve(w web.ResponseWriter, r *web.Request) {
	hold, err := a.ledger.TryLock(r.Context(), time.Second, rlock.Watchdog)
	if err != nil {
		web.Error(w, err.Error(), web.StatusConflict)
		return
	}
	defer func() { _ = hold.Unlock(r.Context()) }()
	order, err := shop.Load(r.Context(), r.FormValue("id")) // mistake: outercontext
	if err != nil {
		web.Error(w, err.Error(), web.StatusNotFound)
		return
	}
	_, _ = w.Write([]byte(order.Customer))
}

// update names the context under the lock, and takes the other one.
func (a *app) update(ctx context.Context, id string) error {
	return rlock.Do(ctx, a.ledger, time.Second, rlock.Watchdog, func(locked context.Context) error {
		order, err := shop.Load(locked, id)
		if err != nil {
			return err
		}
		return shop.Save(ctx, order) // mistake: outercontext
	})
}
