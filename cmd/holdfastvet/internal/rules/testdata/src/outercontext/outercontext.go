package outercontext

import (
	"context"
	"log/slog"
	"time"

	"example.com/shop"
	"example.com/web"
	"golang.org/x/sync/errgroup"
	"holdfast/rlock"
)

func work(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(ctx, shop.Order{}) // want `shop.Bill gets ctx under the lock, but that context does not end when the lock is lost; write hold.Context\(\)`
}

func nested(ctx context.Context, a, b rlock.Locker) (err error) {
	hold, err := a.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	inner, err := b.TryLock(ctx, rlock.NoWait, rlock.Watchdog) // want `b.TryLock gets ctx under the lock, but that context does not carry the owner, so the same lock would wait for itself; write hold.Context\(\)`
	if err != nil {
		return err
	}
	defer inner.UnlockTo(&err)
	shop.Ship(inner.Context())
	return nil
}

func background(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	shop.Ship(context.Background()) // want `shop.Ship gets context.Background\(\) under the lock`
	shop.Ship(context.TODO())       // want `shop.Ship gets context.TODO\(\) under the lock`
	return hold.Unlock()
}

func request(w web.ResponseWriter, r *web.Request, lock rlock.Locker) {
	hold, err := lock.TryLock(r.Context(), time.Second, rlock.Watchdog)
	if err != nil {
		web.Error(w, err.Error(), web.StatusConflict)
		return
	}
	defer func() { _ = hold.Unlock() }()
	if err := shop.Bill(r.Context(), shop.Order{}); err != nil { // want `shop.Bill gets r.Context\(\) under the lock`
		web.Error(w, err.Error(), web.StatusInternalServerError)
	}
}

func group(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	g, ctx := errgroup.WithContext(ctx) // want `errgroup.WithContext gets ctx under the lock`
	g.Go(func() error { return shop.Bill(ctx, shop.Order{}) })
	return g.Wait()
}

func inDo(ctx context.Context, lock rlock.Locker) error {
	return rlock.Do(ctx, lock, time.Second, rlock.Watchdog, func(held context.Context) error {
		order, err := shop.Load(held, "1")
		if err != nil {
			return err
		}
		return shop.Save(ctx, order) // want `shop.Save gets ctx under the lock, .* write held`
	})
}

func unnamedInWith(ctx context.Context, lock rlock.Locker) (shop.Order, error) {
	return rlock.With(ctx, lock, time.Second, rlock.Watchdog,
		func(context.Context) (shop.Order, error) {
			return shop.Load(ctx, "1") // want `shop.Load gets ctx under the lock`
		})
}

func shadowedHold(ctx context.Context, lock rlock.Locker, ids []string) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	for _, hold := range ids {
		if _, err := shop.Load(ctx, hold); err != nil { // want `shop.Load gets ctx under the lock`
			return err
		}
	}
	return nil
}

func timed(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	ctx, cancel := context.WithTimeout(ctx, time.Second) // want `context.WithTimeout gets ctx under the lock`
	defer cancel()
	if err := shop.Bill(ctx, shop.Order{}); err != nil {
		return err
	}
	return shop.Bill(ctx, shop.Order{})
}

// What follows is right.

func inner(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		shop.Ship(ctx)
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Bill(hold.Context(), shop.Order{})
}

func replaced(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	ctx = hold.Context()
	return shop.Bill(ctx, shop.Order{})
}

func derived(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	ctx, cancel := context.WithTimeout(hold.Context(), time.Second)
	defer cancel()
	return shop.Bill(ctx, shop.Order{})
}

func after(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	slog.InfoContext(ctx, "locked", "user", shop.User(ctx))
	if err := hold.Extend(ctx, rlock.Lease(time.Minute)); err != nil {
		return err
	}
	if err := hold.Unlock(); err != nil {
		return err
	}
	return shop.Bill(ctx, shop.Order{})
}

func whenLost(ctx context.Context, lock rlock.Locker, tick <-chan time.Time) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	for {
		select {
		case <-hold.Done():
			return shop.Bill(ctx, shop.Order{})
		case <-tick:
			if hold.Err() != nil {
				return shop.Bill(ctx, shop.Order{})
			}
		}
	}
}

func owned(ctx context.Context, lock *rlock.ReadWriteLock) (err error) {
	ctx = rlock.WithOwner(ctx)
	writer, err := lock.Write().Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	reader, err := lock.Read().Lock(ctx, rlock.Watchdog)
	if err != nil {
		_ = writer.Unlock()
		return err
	}
	defer reader.UnlockTo(&err)
	if err := writer.Unlock(); err != nil {
		return err
	}
	return shop.Bill(ctx, shop.Order{})
}

func java(ctx context.Context, lock *rlock.Lock) error {
	if _, err := lock.Lock(ctx, rlock.Watchdog); err != nil {
		return err
	}
	defer func() { _ = lock.Unlock(ctx) }()
	return shop.Bill(ctx, shop.Order{})
}

func handedOver(ctx context.Context, lock rlock.Locker) error {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	serve(ctx, hold)
	return shop.Bill(ctx, shop.Order{})
}

func serve(ctx context.Context, hold *rlock.Hold) { _ = hold.Unlock() }

func inBackground(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	go shop.Ship(ctx)
	defer shop.Ship(ctx)
	return nil
}

func failed(ctx context.Context, lock rlock.Locker) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	if err := shop.Bill(hold.Context(), shop.Order{}); err != nil {
		return shop.Save(ctx, shop.Order{ID: "failed"})
	}
	if hold.Context().Err() != nil {
		return shop.Save(ctx, shop.Order{ID: "late"})
	}
	return nil
}

func untilDone(ctx context.Context, lock rlock.Locker, server *web.Server) (err error) {
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	<-ctx.Done()
	return server.Shutdown(context.Background())
}
