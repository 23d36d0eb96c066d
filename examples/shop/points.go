package main

import "context"

// Award is a number of points for a customer.
type Award struct {
	Customer string
	Points   int64
}

// pointsLock is the annotation of the method in Java:
//
//	@Lock4j(keys = "#customer", acquireTimeout = 60_000)
//	public void add(String customer, long points)
var pointsLock = Lock4j[Award]{
	Method:         "holdfast.shop.Pointsadd",
	Keys:           func(award Award) []string { return []string{award.Customer} },
	AcquireTimeout: busy,
}

// addPoints is AddPoints without the lock.
func (s *Shop) addPoints(ctx context.Context, award Award) (int64, error) {
	key := "points:" + award.Customer
	if err := s.add(ctx, key, award.Points); err != nil {
		return 0, err
	}
	return s.data.Get(ctx, key)
}
