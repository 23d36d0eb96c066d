package main

import (
	"context"
	"errors"
	"fmt"

	"holdfast/rlock"
)

// ErrSoldOut reports that there is less in stock than is wanted.
var ErrSoldOut = errors.New("sold out")

// Reserve takes n of what is in stock.
//
//	lock.lock(); try { … } finally { lock.unlock(); }
func (s *Shop) Reserve(ctx context.Context, sku string, n int64) (err error) {
	hold, err := s.locks.NewLock(skuLock(sku)).Lock(ctx, rlock.Watchdog)
	if err != nil {
		return err
	}
	defer hold.UnlockTo(&err)
	ctx = hold.Context() // from here on: it has the owner, and ends if the lock is lost

	left, err := s.data.Get(ctx, "stock:"+sku)
	if err != nil {
		return err
	}
	if left < n {
		return fmt.Errorf("%d of %s: %w", n, sku, ErrSoldOut)
	}
	if err := s.data.Set(ctx, "stock:"+sku, left-n); err != nil {
		return err
	}
	return s.countSold(ctx, sku, n)
}

// countSold is called by others, too, so it locks by itself. In Java the thread enters again, here
// the owner in the context does.
func (s *Shop) countSold(ctx context.Context, sku string, n int64) error {
	lock := s.locks.NewLock(skuLock(sku))
	return rlock.Do(ctx, lock, rlock.Forever, rlock.Watchdog, func(ctx context.Context) error {
		return s.add(ctx, "sold:"+sku, n)
	})
}

// skuLock returns the name of the lock of what is known about an article.
func skuLock(sku string) string { return "shop:sku:" + sku }

// add adds to a number. The caller has locked it.
func (s *Shop) add(ctx context.Context, key string, n int64) error {
	value, err := s.data.Get(ctx, key)
	if err != nil {
		return err
	}
	return s.data.Set(ctx, key, value+n)
}
