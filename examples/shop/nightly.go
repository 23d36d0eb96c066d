package main

import (
	"context"
	"errors"

	"holdfast/rlock"
)

// Close closes the books of a night, and returns whether it was done here. All instances try, at
// about the same time; the lock lets one of them in, and what it writes keeps out those that come
// when it has left.
//
//	if (!lock.tryLock()) return false;
func (s *Shop) Close(ctx context.Context, night string) (here bool, err error) {
	lock := s.locks.NewLock("shop:nightly:" + night)
	hold, err := lock.TryLock(ctx, rlock.NoWait, rlock.Watchdog)
	if errors.Is(err, rlock.ErrNotAcquired) {
		return false, nil // somebody else is at it
	}
	if err != nil {
		return false, err
	}
	defer hold.UnlockTo(&err)
	ctx = hold.Context()

	closed, err := s.data.Get(ctx, "closed:"+night)
	if err != nil || closed > 0 {
		return false, err // somebody else has done it
	}
	var sold int64
	for _, sku := range skus {
		n, err := s.data.Get(ctx, "sold:"+sku)
		if err != nil {
			return false, err
		}
		sold += n
	}
	return true, s.data.Set(ctx, "closed:"+night, 1+sold)
}
