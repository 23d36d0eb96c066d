package waitqueue

import (
	"cmp"
	"time"
)

// These bound how long a lock stays in a process while others wait for it elsewhere. release.lua
// has a limit of its own for Streak.Count.
const mostHere, longestHere = 16, 100 * time.Millisecond

// Streak counts the latest hand-overs of a lock, within this process and to waiters of any process.
// A Streak belongs to the lock, because the queue of the lock may be empty for a moment.
type Streak struct {
	Count     int       // hand-overs since the lock was free, except to a successor that came First
	Began     int64     // time of the second hand-over, by the server's clock in ms; 0 if not noted
	Here      int       // hand-overs within this process since the lock came to this process
	HereSince time.Time // when Here began to count; zero if not noted
}

// stays reports whether the lock may stay in this process although others may wait elsewhere.
func (s Streak) stays() bool {
	return s.Here < mostHere &&
		(s.HereSince.IsZero() || time.Since(s.HereSince) < longestHere)
}

// Ticket distinguishes successive registrations of an owner. 0 means no registration.
type Ticket int64

// Grant describes a lock that was given to a waiter.
type Grant struct {
	Since  time.Time // the lease began after this
	Local  bool      // by a release of this client
	Fence  int64
	Streak Streak
	Turn   Turn // of a lock that was passed on without a command; else zero
	// Registered says that the waiter was registered, so that an older message may still arrive.
	Registered bool
}

// Message reports that a release, perhaps in another process, granted the lock to a registration.
type Message struct {
	Owner  string
	Ticket Ticket
	Local  bool // by a release of this client
	Fence  int64
	Streak Streak
}

// Offer names the successor of a release that is under way.
type Offer[Name comparable, Data any] struct {
	Streak    Streak              // of the lock, before the release
	Successor *Waiter[Name, Data] // who gets the lock; nil if nobody waits
	First     bool                // the successor comes before waiters in other processes
}

// Offer picks the head of a queue as the successor of a release that is about to be sent. With
// registers, the release may register the successor instead. If the returned offer has a successor,
// the caller calls Settle. A caller need not call Offer if [Queues.Has] reports that there is no
// queue.
func (qs *Queues[Name, Data]) Offer(name Name, s Streak, registers bool) Offer[Name, Data] {
	o := Offer[Name, Data]{Streak: s}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	w := qs.byName[name].head()
	if w == nil || w.state != Waiting {
		return o
	}
	w.state.step(offer)
	o.Successor = w
	o.First = s.stays()
	if registers && !o.First {
		// Another process may grant the successor the lock before the reply to the release arrives.
		qs.registered[w.Owner] = w
	}
	return o
}

// After returns the streak after a release gave the lock to the successor. sent is the time when
// the release was sent. began is Streak.Began, or 0 if not noted.
func (o Offer[Name, Data]) After(sent time.Time, began int64) Streak {
	s := o.Streak
	if !o.First {
		s.Count++
		s.Began = cmp.Or(s.Began, began)
	}
	if !o.First || s.HereSince.IsZero() {
		s.Here, s.HereSince = 0, sent // nobody waits elsewhere, or the successor would not be next
	}
	s.Here++
	return s
}

// Release describes how a release with an offer ended.
type Release struct {
	Outcome Outcome
	Sent    time.Time
	Ticket  Ticket // of a registered successor
	Fence   int64  // of a successor that has the lock
	Began   int64  // Streak.Began of a successor that has the lock
	Late    bool   // if Uncertain, the server may still execute the release at any time
}

// Outcome is the result of a release for its successor.
type Outcome uint8

// The outcomes of a release. With Uncertain and all later outcomes, the successor may have the lock
// or a registration.
const (
	ToAll               Outcome = iota // announced to all, or another owner has the lock
	ToNobody                           // not announced, so the lock may be free, or with the successor
	Uncertain                          // the server may have executed it, or may still execute it
	ToSuccessor                        // the successor has the lock
	SuccessorRegistered                // another owner has the lock, and the successor is registered
)

// Settle records the result of a release with a successor. Settle returns true if the successor has
// left without the lock, but may now have the lock or a registration. The caller then cleans up.
func (o Offer[Name, Data]) Settle(r Release) (abandoned bool) {
	w := o.Successor
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	before, remains := w.state, r.Outcome >= Uncertain
	w.state.step(settle)
	if before == LeftOffered || before == Acquired {
		return remains && before == LeftOffered
	}
	registered := w.registered
	w.registered, w.late = w.registered || remains, w.late || r.Late
	switch r.Outcome {
	case ToSuccessor:
		w.giveGrant(Grant{Since: r.Sent, Local: true, Fence: r.Fence, Streak: o.After(r.Sent, r.Began),
			Registered: registered})
	case SuccessorRegistered:
		if r.Sent.Before(w.asked) {
			w.wakeFor(Retry) // the waiter has asked since, and may have another registration
		} else if !w.state.asking() { // otherwise the reply to the request also has the ticket
			w.ticket, w.asked = r.Ticket, r.Sent
		}
	case Uncertain, ToNobody:
		w.wakeFor(Retry)
	}
	w.readMessages()
	return false
}

// readMessages handles messages once the ticket of the waiter is certain. The caller holds
// Queues.mu.
func (w *Waiter[Name, Data]) readMessages() {
	if w.state.asking() || w.state == Offered {
		return
	}
	for _, m := range w.unread {
		switch {
		case w.ticket == 0:
			w.wakeFor(Retry) // the server decides
		case m.Ticket == w.ticket:
			w.giveGrant(Grant{Since: w.asked, Local: m.Local, Fence: m.Fence, Streak: m.Streak,
				Registered: true})
		case m.Ticket > w.ticket:
			w.wakeFor(Retry) // the reply with the newer ticket is missing
		}
	}
	w.unread = nil
}

// Deliver passes a message to its waiter, and reports whether a matching queue has that waiter.
func (qs *Queues[Name, Data]) Deliver(m Message, matches func(Name) bool) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	w := qs.registered[m.Owner]
	if w == nil || !matches(w.queue.name) {
		return false
	}
	w.unread = append(w.unread, m)
	w.readMessages()
	return true
}

// Ask notes that the waiter sends a request, and reports whether the request should register the
// waiter. The request should register if registers is set and the waiter receives grants (hears).
// The request should also register if the waiter may be registered already, because only a
// registering request ends a registration when it gets the lock.
func (w *Waiter[Name, Data]) Ask(registers, hears bool) bool {
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	w.state.step(ask)
	w.ticket, w.given = 0, Grant{} // the reply decides, even if too little of a grant was left
	w.woken()                      // the request answers the reason for waking
	if !registers || !hears && !w.registered {
		return false
	}
	w.registered = true
	qs.registered[w.Owner] = w
	return true
}

// Reply notes that the request sent at the time asked is over. t is the ticket in the reply, or 0.
// If the waiter was given the lock meanwhile, Reply returns the grant.
func (w *Waiter[Name, Data]) Reply(t Ticket, asked time.Time) (Grant, bool) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.state.step(reply)
	early := w.given
	if t != 0 {
		w.ticket, w.asked = t, asked
	}
	w.readMessages()
	if !early.Since.IsZero() && w.state == Waiting {
		w.giveGrant(early)
	}
	if w.state != Granted {
		return Grant{}, false
	}
	return w.given, true
}
