package redlock

import "holdfast/rlock"

// InUse is how many seats and lines there are in this process: by holds, attempts and releases.
func InUse() (seated, waiting int) {
	seats.mu.Lock()
	seated = len(seats.seats)
	seats.mu.Unlock()
	lines.mu.Lock()
	waiting = len(lines.byIdentity)
	lines.mu.Unlock()
	return seated, waiting
}

// Parts is on how many nodes a lock is held as far as this process knows.
func (l *Lock) Parts(h *rlock.Hold) int { return l.count(h, granted) }

// Asked is how many nodes have been asked for a lock that is held, and have not answered.
func (l *Lock) Asked(h *rlock.Hold) int { return l.count(h, asked) }

func (l *Lock) count(h *rlock.Hold, s state) int {
	for _, t := range l.tenures() {
		if t.owner == h.Owner() {
			t.mu.Lock()
			defer t.mu.Unlock()
			return t.in(s)
		}
	}
	return 0
}

// tenures are those of this process.
func (l *Lock) tenures() []*tenure {
	seats.mu.Lock()
	defer seats.mu.Unlock()
	var found []*tenure
	for p, seat := range seats.seats {
		if t := seat.held(); t != nil && p.lock == l.identity {
			found = append(found, t)
		}
	}
	return found
}
