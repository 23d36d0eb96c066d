package main

import "holdfast/rlock"

// Shop sells what is in stock. It is safe for concurrent use, and any number of them, in Go and in
// Java, may work with the same data.
type Shop struct {
	locks *rlock.Client
	data  Data

	// AddPoints adds to the points of a customer, and returns how many there are.
	AddPoints Handler[Award, int64]
}

// New returns a shop that locks with locks, and has its numbers in data.
func New(locks *rlock.Client, data Data) *Shop {
	s := &Shop{locks: locks, data: data}
	s.AddPoints = Wrap(locks, pointsLock, s.addPoints)
	return s
}
