package redlock

import "holdfast/rlock"

// InUse returns how many sessions and waiters there are in this process: by holds, attempts and
// releases.
func InUse() (open, waiting int) {
	waiting, _ = queues.Waiters(func(identity) bool { return true })
	return len(sessions.All()), waiting
}

// Parts returns on how many nodes a lock is held as far as this process knows.
func (l *Lock) Parts(h *rlock.Hold) int {
	for _, s := range sessions.All() {
		if a := heldIn(s); a != nil && s.Key().lock == l.identity && a.owner == h.Owner() {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.count(granted)
		}
	}
	return 0
}
