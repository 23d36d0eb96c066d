package rlock

import "time"

// Leave gives the hold up without releasing its lock, which becomes free when the lease ends. It is
// for leases that are meant to run out: a lock with a lease of a minute that is left lets its
// section run once a minute. The hold ends with [ErrReleased], nothing is sent, and nothing is
// logged when the lease ends. Leave does nothing if the hold has ended before. It does not block.
//
// Of nested levels only the last one leaves the lock; the others end as with Unlock. The lease is
// not renewed any more: what was taken with [Watchdog] lasts for Options.WatchdogLease at most.
func (h *Hold) Leave() {
	l := h.of()
	if !l.beginRelease() {
		return
	}
	if a, leaves := l.acquisition.(leaver); leaves {
		a.Leave(l.of(h))
	}
	l.end(ErrReleased)
	l.trace.Load().released(nil, true)
}

// leaver is an [Acquisition] that can be left. Without it, Leave ends the hold in this process.
type leaver interface {
	// Leave ends the level that h stands for. With the last level it ends the acquisition, without
	// a command. It is called once for each hold, instead of Release.
	Leave(h *Hold)
}

// Leave implements [Hold.Leave].
func (a *acquisition) Leave(h *Hold) {
	if a.remove(h.level) == 0 {
		a.endLeft()
	}
}

// endLeft ends an acquisition whose last level was left.
func (a *acquisition) endLeft() {
	c := a.client
	if a.registered {
		// A late grant message is not to be taken for a lock that nobody holds.
		c.releasing.Store(a.owner, nil)
		lasts := max(time.Until(a.lease.Deadline()), registrationKept)
		time.AfterFunc(lasts, func() { c.releasing.Delete(a.owner) })
	}
	a.unwatch()
	removeFrom(a.session, a)
	if !a.end(leave, ErrReleased) {
		c.losses.Remove(a.key(), a) // lost before
	}
	a.endUntrusted()
}
