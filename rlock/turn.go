package rlock

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/waitqueue"
)

// A local turn passes a lock on to the next waiter of this process without a command. Redis does
// not learn of the turn, so the new holder has the name of the first one in Redis. Every rule here
// keeps two holders apart, or bounds how long the process keeps the lock. The model is
// LocalTurns.tla.

// passOn passes the lock of a released acquisition on to the next waiter, and reports whether it
// did. The caller has locked the session, and the watchdog had the acquisition until the release.
func (a *acquisition) passOn() bool {
	c, l := a.client, a.lock
	if !l.takesTurns || c.options.NoLocalTurns {
		return false
	}
	// A late request would give the lock to the name again after the last turn. A grant message for
	// the name would release the lock of another turn. After a nested call, the count in Redis may
	// not be 1.
	if a.noTurns || a.late != nil || a.part != nil || a.keepsTaken() {
		return false
	}
	a.mu.Lock()
	usual := a.longestLease == c.options.WatchdogLease && // 0 without the watchdog
		!a.besides // reads of this writer, or late requests to read, have the same name
	a.mu.Unlock()
	until := a.watched.Deadline()
	// Nobody renews the lease until the next holder is awake.
	if !usual || time.Until(until) < c.grantLease*2/3 {
		return false
	}
	if !c.transport.HandOvers().ThisClient || c.isClosing() ||
		c.forced.since(l.name, a.streak.HereSince) {
		return false
	}
	if !c.queues.Pass(l.waiting.queue, a.streak, waitqueue.Turn{Owner: a.owner, Until: until}) {
		return false
	}
	a.step(confirm)
	return true
}

// takeTurn begins the hold of a lock that was passed on. If the lock can no longer be trusted for
// long enough, takeTurn returns neither a hold nor an error, and schedules the release.
func (at *attempt) takeTurn(g waitqueue.Grant) (*Hold, error) {
	c, lease, own := at.client, at.request.grantLease, at.request.owner
	at.request.owner = g.Turn.Owner
	if time.Until(g.Turn.Until) < lease/2 || c.forced.since(at.lock.name, g.Streak.HereSince) {
		at.waiter.Decline()
		c.cleaner.add(at.cleanup(at.request, 0))
		at.request.owner = own
		return nil, nil
	}
	at.fresh.streak = g.Streak
	hold, err := at.begin(lease, g.Turn.Until, 0)
	if hold != nil && c.forced.since(at.lock.name, g.Streak.HereSince) {
		at.fresh.lose(ErrForced)          // ForceUnlock may have missed it
		c.cleaner.add(at.fresh.cleanup()) // or it fails, and the lock would stay
	}
	at.call.given(HandedOver, lease)
	return hold, err
}

// forcings has the latest calls of ForceUnlock of this client, by lock. A lock that Redis gave to
// the client before such a call has ended takes no further turn. It is safe for concurrent use.
type forcings struct {
	some atomic.Bool // byLock is not empty

	mu     sync.Mutex
	byLock map[string]forcing // guarded by mu
}

// forcing has the calls of ForceUnlock for a lock.
type forcing struct {
	running int
	ended   time.Time // the end of the latest call that has ended
}

// begin notes a call. An earlier call of any lock is remembered for a while, until no turn from
// before it can be taken.
func (f *forcings) begin(lock string, while time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byLock == nil {
		f.byLock = make(map[string]forcing)
	}
	maps.DeleteFunc(f.byLock, func(_ string, of forcing) bool {
		return of.running == 0 && time.Since(of.ended) > while
	})
	of := f.byLock[lock]
	of.running++
	f.byLock[lock] = of
	f.some.Store(true)
}

func (f *forcings) end(lock string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.byLock[lock]
	f.byLock[lock] = forcing{of.running - 1, time.Now()}
}

// since reports whether a ForceUnlock may have released a lock that Redis gave to this client at
// the time given.
func (f *forcings) since(lock string, given time.Time) bool {
	if !f.some.Load() { // as nearly always
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	of, found := f.byLock[lock]
	return found && (of.running > 0 || !given.After(of.ended))
}
