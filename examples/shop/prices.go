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
			price.Net, err = s.data.Get(ctx, "price:net")
			if err != nil {
				return Price{}, err
			}
			price.Gross, err = s.data.Get(ctx, "price:gross")
			return price, err
		})
}

// Raise raises the price by one, and returns the new one. A writer keeps readers and writers out.
func (s *Shop) Raise(ctx context.Context) (int64, error) {
	write := s.locks.NewReadWriteLock(pricesLock).Write()
	return rlock.With(ctx, write, rlock.Forever, rlock.Watchdog,
		func(ctx context.Context) (int64, error) {
			net, err := s.data.Get(ctx, "price:net")
			if err != nil {
				return 0, err
			}
			net++
			if err := s.data.Set(ctx, "price:net", net); err != nil {
				return 0, err
			}
			return net, s.data.Set(ctx, "price:gross", 2*net)
		})
}
