package main

import (
	"context"
	"fmt"
	"time"

	"holdfast/multilock"
	"holdfast/rlock"
)

// busy is how long a customer waits for others.
const busy = time.Minute

// Repack turns n of one article into n of another. It has both locks or none; they are taken in one
// order, whatever that of the arguments, so that nobody waits in a circle.
//
//	both = redisson.getMultiLock(a, b); if (!both.tryLock(60, -1, SECONDS)) throw …
func (s *Shop) Repack(ctx context.Context, from, to string, n int64) (err error) {
	both := multilock.NewOn(s.locks, skuLock(from), skuLock(to))
	hold, err := both.TryLock(ctx, busy, rlock.Watchdog)
	if err != nil {
		return err // errors.Is(err, rlock.ErrNotAcquired): it says who has which
	}
	defer hold.UnlockTo(&err)
	ctx = hold.Context()

	left, err := s.data.Get(ctx, "stock:"+from)
	if err != nil {
		return err
	}
	if left < n {
		return fmt.Errorf("%d of %s: %w", n, from, ErrSoldOut)
	}
	if err := s.data.Set(ctx, "stock:"+from, left-n); err != nil {
		return err
	}
	return s.add(ctx, "stock:"+to, n)
}
