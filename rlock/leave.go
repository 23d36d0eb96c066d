package rlock

import (
	"time"

	"holdfast/watchdog"
)

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
		a.Leave(h)
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
//
// An earlier request of the owner may still be under way (a.late), under the same name:
//
//   - While the lock is left, it finds the owner's own lock, and may make that last longer. It is
//     not cleaned up yet: a release would free the lock that was meant to stay, or that Attach is
//     about to take over.
//   - Once the lease is over, it takes the free lock for a whole lease, which nobody holds.
//   - If another owner has the lock by then, it registers this one, and the next release grants it
//     the lock.
//
// So the clean-up begins when the lease is over, and goes on for as long as after a release. The
// last case may come earlier if the lock was attached and released meanwhile: then the lock may
// stay granted to nobody until the left lease would have ended. A registered owner that acquired
// the lock by asking may still get a grant message about the left lock. The client ignores that
// message until then. It cleans up after any other grant.
func (a *acquisition) endLeft() {
	c, cu := a.client, a.cleanup()
	// In Redis the lease ends later than here: by the drift of all of it, and by the time that the
	// command took to get there.
	whole := time.Until(a.lease.Deadline())
	if a.late != nil {
		whole = max(whole, a.late.lease)
	}
	over := a.lease.Deadline().Add(watchdog.Drift(whole))
	if cu.until.After(over) {
		over = cu.until
	}
	over = over.Add(min(c.options.CommandTimeout, closeTimeout))
	for last := c.leftUntil.Load(); last == nil || last.Before(over); last = c.leftUntil.Load() {
		if c.leftUntil.CompareAndSwap(last, &over) { // Close leaves who has left it
			break
		}
	}
	if a.registered {
		c.releasing.Store(a.owner, nil)
		time.AfterFunc(time.Until(over), func() { c.releasing.Delete(a.owner) })
	}
	if a.late != nil {
		lasts := max(a.late.lasts(a.lock, 0), c.options.WatchdogLease)
		cu.request, cu.from, cu.until, cu.retry = *a.late, over, over.Add(lasts), true
		c.cleaner.add(cu)
	}
	a.unwatch()
	removeFrom(a.session, a)
	if !a.end(leave, ErrReleased) {
		c.losses.Remove(a.key(), a) // lost before
	}
	a.endUntrusted()
}
