package mistakes

import (
	"context"
	"time"

	"example.com/shop"
	"holdfast/redlock"
	"holdfast/rlock"
)

const (
	settle  = 30 * time.Second
	seconds = 5
)

// settleDown sleeps for as long as the lease is.
func (a *app) settleDown(ctx context.Context) (err error) {
	hold, err := a.ledger.Lock(ctx, settle)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	time.Sleep(settle) // mistake: shortlease
	return shop.Bill(hold.Context(), shop.Order{})
}

// poll sleeps between two looks.
func (a *app) poll(ctx context.Context, id string) (err error) {
	hold, err := a.locks.NewLock(id).TryLock(ctx, time.Second, seconds*time.Second)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	for stock[id] == 0 {
		time.Sleep(10 * time.Second) // mistake: shortlease
	}
	return nil
}

// backOff sleeps only after a failure.
func (a *app) backOff(ctx context.Context, locks ...*rlock.Client) (err error) {
	lease := 500 * time.Millisecond
	hold, err := redlock.NewOn("jobs", redlock.Options{}, locks...).Lock(ctx, lease)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	if err := shop.Bill(hold.Context(), shop.Order{}); err != nil {
		time.Sleep(time.Second) // mistake: shortlease
		return shop.Bill(hold.Context(), shop.Order{})
	}
	return nil
}

// simulate was a test of the Java program.
func (a *app) simulate(ctx context.Context) error {
	ctx = rlock.WithOwner(ctx)
	if _, err := a.ledger.TryLock(ctx, 3*time.Second, 2*time.Second); err != nil {
		return err
	}
	defer func() { _ = a.ledger.Unlock(ctx) }()
	time.Sleep(3 * time.Second) // mistake: shortlease
	return nil
}

// rest sleeps in the function of Do.
func (a *app) rest(ctx context.Context) error {
	return rlock.Do(ctx, a.ledger, time.Second, time.Second, func(ctx context.Context) error {
		shop.Ship(ctx)
		time.Sleep(2 * time.Second) // mistake: shortlease
		return nil
	})
}

// portJava is tryLock(3, 30, TimeUnit.SECONDS) without its unit.
func (a *app) portJava(ctx context.Context) (err error) {
	hold, err := a.ledger.TryLock(ctx, 3, 30*time.Second) // mistake: shortlease
	if err != nil {
		return err
	}
	defer hold.UnlockTo(ctx, &err)
	return shop.Bill(hold.Context(), shop.Order{})
}

// convert forgets to multiply.
func (a *app) convert(ctx context.Context) error {
	return rlock.Do(ctx, a.ledger, time.Second, seconds, // mistake: shortlease
		func(ctx context.Context) error { return shop.Bill(ctx, shop.Order{}) })
}
