package redlock

import "holdfast/rlock"

// InUse returns how many sessions and waiters there are in this process: by holds, attempts and
// releases.
func InUse() (open, waiting int) {
	waiting, _ = queues.Waiters(func(identity) bool { return true })
	return len(sessions.All()), waiting
}

// Parts returns on how many nodes a lock is held as far as this process knows.
func (l *Lock) Parts(h *rlock.Hold) int { return l.count(h, granted) }

// Asked returns how many nodes have been asked for a lock that is held, and have not answered.
func (l *Lock) Asked(h *rlock.Hold) int { return l.count(h, asked) }

func (l *Lock) count(h *rlock.Hold, s state) int {
	for _, a := range l.acquisitions() {
		if a.owner == h.Owner() {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.count(s)
		}
	}
	return 0
}

// acquisitions returns those of this process.
func (l *Lock) acquisitions() []*acquisition {
	var found []*acquisition
	for _, s := range sessions.All() {
		if a := heldIn(s); a != nil && s.Key().lock == l.identity {
			found = append(found, a)
		}
	}
	return found
}
