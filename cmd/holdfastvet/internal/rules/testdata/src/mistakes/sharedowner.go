package mistakes

import (
	"context"
	"sync"
	"time"

	"example.com/shop"
	"golang.org/x/sync/errgroup"
	"holdfast/rlock"
)

// fanOut bills all orders at once, and thinks that each customer is locked.
func (a *app) fanOut(ctx context.Context, orders []shop.Order) (err error) {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	g, ctx := errgroup.WithContext(hold.Context())
	for _, order := range orders {
		g.Go(func() (err error) {
			customer, err := a.locks.NewLock(order.Customer).Lock(ctx, rlock.Watchdog) // mistake: sharedowner
			if err != nil {
				return err
			}
			defer customer.UnlockTo(ctx, &err)
			return shop.Bill(customer.Context(), order)
		})
	}
	return g.Wait()
}

// crowd starts goroutines by hand.
func (a *app) crowd(ctx context.Context, ids []string) error {
	return rlock.Do(ctx, a.ledger, time.Second, rlock.Watchdog, func(ctx context.Context) error {
		var group sync.WaitGroup
		for _, id := range ids {
			group.Add(1)
			go func() {
				defer group.Done()
				_ = rlock.Do(ctx, a.locks.NewLock("counter"), time.Second, rlock.Watchdog, // mistake: sharedowner
					func(context.Context) error { stock[id]++; return nil })
			}()
		}
		group.Wait()
		return nil
	})
}

// watch gives the goroutine the context as an argument.
func (a *app) watch(ctx context.Context) (err error) {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	done := make(chan error, 1)
	go func(ctx context.Context) {
		inner, err := a.locks.NewLock("audit").TryLock(ctx, time.Second, rlock.Watchdog) // mistake: sharedowner
		if err == nil {
			err = inner.Unlock(ctx)
		}
		done <- err
	}(hold.Context())
	return <-done
}

// delegate starts a method.
func (a *app) delegate(ctx context.Context) (err error) {
	hold, err := a.ledger.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	go a.audit(hold.Context()) // mistake: sharedowner
	return shop.Bill(hold.Context(), shop.Order{})
}

func (a *app) audit(ctx context.Context) {
	hold, err := a.locks.NewLock("audit").Lock(ctx, rlock.Watchdog)
	if err != nil {
		return
	}
	defer func() { _ = hold.Unlock(ctx) }()
	shop.Ship(hold.Context())
}

// race gives each attempt a deadline, and the same owner.
func (a *app) race(hold *rlock.Hold, group *sync.WaitGroup) {
	for range 2 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(hold.Context(), time.Second)
			defer cancel()
			inner, err := a.ledger.Lock(ctx, rlock.Watchdog) // mistake: sharedowner
			if err != nil {
				return
			}
			defer func() { _ = inner.Unlock(ctx) }()
			shop.Ship(inner.Context())
		})
	}
}

// tally makes one owner for all, before the loop.
func (a *app) tally(ctx context.Context, ids []string) {
	ctx = rlock.WithOwner(ctx)
	var group sync.WaitGroup
	for _, id := range ids {
		group.Go(func() {
			hold, err := a.locks.NewLock("counter").Lock(ctx, rlock.Watchdog) // mistake: sharedowner
			if err != nil {
				return
			}
			defer func() { _ = hold.Unlock(ctx) }()
			stock[id]++
		})
	}
	group.Wait()
}
