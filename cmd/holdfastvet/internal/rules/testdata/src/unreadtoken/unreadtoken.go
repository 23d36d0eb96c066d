package unreadtoken

import (
	"context"
	"errors"

	"example.com/shop"
	"holdfast/rlock"
)

func direct(ctx context.Context, client *rlock.Client) (err error) {
	hold, err := client.NewFencedLock("ledger").Lock(ctx, rlock.Watchdog) // want `the token of hold is never read; nothing keeps a holder that was stopped beyond its lease from writing; pass hold.Token\(\)`
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Save(hold.Context(), shop.Order{})
}

func byVariable(ctx context.Context, client *rlock.Client) error {
	ledger := client.NewFencedLock("ledger")
	hold, err := ledger.TryLock(ctx, rlock.NoWait, rlock.Watchdog) // want `the token of hold is never read`
	if err != nil {
		return err
	}
	err = shop.Save(hold.Context(), shop.Order{})
	return errors.Join(err, hold.Unlock())
}

var (
	client *rlock.Client
	ledger = client.NewFencedLock("ledger")
)

func byPackageVariable(ctx context.Context) (err error) {
	hold, err := ledger.Lock(ctx, rlock.Watchdog) // want `the token of hold is never read`
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Unlock()) }()
	return shop.Save(hold.Context(), shop.Order{})
}

func byDo(ctx context.Context, client *rlock.Client) error {
	return rlock.Do(ctx, client.NewFencedLock("ledger"), rlock.NoWait, rlock.Watchdog, // want `rlock.Do does not show the token`
		func(ctx context.Context) error { return shop.Save(ctx, shop.Order{}) })
}

func byWith(ctx context.Context) (shop.Order, error) {
	return rlock.With(ctx, ledger, rlock.NoWait, rlock.Watchdog, // want `rlock.With does not show the token`
		func(ctx context.Context) (shop.Order, error) { return shop.Load(ctx, "1") })
}

// What follows is right.

func read(ctx context.Context, client *rlock.Client) (err error) {
	hold, err := client.NewFencedLock("ledger").Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Write(hold.Context(), hold.Token(), shop.Order{})
}

func passedOn(ctx context.Context, client *rlock.Client) (err error) {
	hold, err := client.NewFencedLock("ledger").Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return write(hold)
}

func write(hold *rlock.Hold) error { return shop.Write(hold.Context(), hold.Token(), shop.Order{}) }

func returned(ctx context.Context, client *rlock.Client) (*rlock.Hold, error) {
	hold, err := client.NewFencedLock("ledger").Lock(ctx, rlock.Watchdog)
	if err != nil {
		return nil, err
	}
	return hold, nil
}

func methodValue(ctx context.Context, client *rlock.Client) (func() int64, error) {
	hold, err := client.NewFencedLock("ledger").Lock(ctx, rlock.Watchdog)
	if err != nil {
		return nil, err
	}
	return hold.Token, nil
}

func plain(ctx context.Context, client *rlock.Client, fenced bool) (err error) {
	lock := client.NewLock("ledger")
	if fenced {
		lock = client.NewFencedLock("ledger")
	}
	hold, err := lock.Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	return shop.Save(hold.Context(), shop.Order{})
}
