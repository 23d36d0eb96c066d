package main

import (
	"context"

	"holdfast/rlock"
)

// Price is a price without and with tax. Nobody sees the one without the other.
type Price struct{ Net, Gross int64 }

// pricesLock is the name of the lock of the cached prices.
const pricesLock = "shop:prices"

// Price returns what is cached. Readers do not keep each other out.
//
//	rw.readLock().lock(); try { return …; } finally { rw.readLock().unlock(); }
func (s *Shop) Price(ctx context.Context) (Price, error) {
	read := s.locks.NewReadWriteLock(pricesLock).Read()
	return rlock.With(ctx, read, rlock.Forever, rlock.Watchdog,
		func(ctx context.Context) (price Price, err error) {
			if price.Net, err = s.data.Get(ctx, "price:net"); err != nil {
				return Price{}, err
			}
			price.Gross, err = s.data.Get(ctx, "price:gross")
			return price, err
		})
}

// Raise raises the price by one. A writer keeps readers and writers out.
func (s *Shop) Raise(ctx context.Context) error {
	write := s.locks.NewReadWriteLock(pricesLock).Write()
	return rlock.Do(ctx, write, rlock.Forever, rlock.Watchdog, func(ctx context.Context) error {
		net, err := s.data.Get(ctx, "price:net")
		if err != nil {
			return err
		}
		if err := s.data.Set(ctx, "price:net", net+1); err != nil {
			return err
		}
		return s.data.Set(ctx, "price:gross", 2*(net+1))
	})
}
