package mistakes

import (
	"context"
	"errors"
	"time"

	"example.com/shop"
	"example.com/web"
	"holdfast/rlock"
)

// bill releases at the end only.
func (a *app) bill(ctx context.Context, order shop.Order) error {
	hold, err := a.locks.NewLock("order:"+order.ID).Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	if err := shop.Bill(hold.Context(), order); err != nil {
		return errors.Join(err, hold.Unlock(ctx)) // mistake: undeferred
	}
	return hold.Unlock(ctx)
}

// handle serves a request in which a panic is recovered.
func (a *app) handle(next func(context.Context, *web.Request) error) web.HandlerFunc {
	return func(w web.ResponseWriter, r *web.Request) {
		hold, err := a.locks.NewLock(r.URL.Path).TryLock(r.Context(), time.Second, rlock.Watchdog)
		if err != nil {
			web.Error(w, err.Error(), web.StatusConflict)
			return
		}
		if err := next(hold.Context(), r); err != nil {
			web.Error(w, err.Error(), web.StatusInternalServerError)
		}
		_ = hold.Unlock(r.Context()) // mistake: undeferred
	}
}

// exporter is somebody else's code.
type exporter interface {
	Export(ctx context.Context, orders ...shop.Order) error
}

// export releases whatever export says, but not if it panics.
func (a *app) export(ctx context.Context, to exporter) (err error) {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	err = to.Export(hold.Context())
	hold.UnlockTo(ctx, &err) // mistake: undeferred
	return err
}

// each locks order after order.
func (a *app) each(ctx context.Context, ids []string) error {
	for _, id := range ids {
		hold, err := a.locks.NewLock("order:"+id).Lock(ctx, rlock.Watchdog)
		if err != nil {
			return err
		}
		order, err := shop.Load(hold.Context(), id)
		if err == nil {
			err = shop.Bill(hold.Context(), order)
		}
		if err := errors.Join(err, hold.Unlock(ctx)); err != nil { // mistake: undeferred
			return err
		}
	}
	return nil
}

// port was a try without finally in Java, too.
func (a *app) port(ctx context.Context) error {
	ctx = rlock.WithOwner(ctx)
	lock := a.locks.NewLock("report")
	if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
		return err
	}
	shop.Ship(ctx)
	return lock.Unlock(ctx) // mistake: undeferred
}
