package rlock

import (
	"math"
	"strings"
)

// Waiting is how many goroutines of this client stand in line for the lock, or, for a fair lock, wait on their own.
func Waiting(l *Lock) int {
	ls := l.client.lines
	ls.mu.Lock()
	defer ls.mu.Unlock()
	called := l.kind.call("").line
	_, lonely := l.kind.(fair)
	n := 0
	for name, q := range ls.byName {
		if name == called || lonely && strings.HasPrefix(name.lock, called.lock) {
			n += q.waiting.Len()
		}
	}
	return n
}

// Ground has all commands of a client sent by goroutines of their own.
func Ground(c *Client) { c.flights.ground(math.MaxInt64) }

// Refusals is how often those who stand in line for the lock have been told that it is held.
func Refusals(l *Lock) int {
	ls := l.client.lines
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if q := ls.byName[l.kind.call("").line]; q != nil {
		return q.denials
	}
	return 0
}

// FairNames is how many names of fair locks are remembered after all of these have been used, and whether the last one is
// known to share its queue.
func FairNames(names ...string) (remembered int, shared bool) {
	var n namesakes
	for _, name := range names {
		shared = n.use(name)
	}
	return len(n.used), shared
}

// Seats is how many seats of a client are in use: by holds, acquisitions under way and clean-ups.
func Seats(c *Client) int {
	c.seats.mu.Lock()
	defer c.seats.mu.Unlock()
	return len(c.seats.seats)
}
