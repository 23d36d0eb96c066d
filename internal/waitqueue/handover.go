package waitqueue

import (
	"cmp"
	"time"
)

// These bound how long a lock stays in a process while others wait for it elsewhere.
const longestStreak, longestStreakTime = 16, 100 * time.Millisecond

// Streak counts the latest hand-overs of a lock: those within this process, and those that waiters
// of any process could have had. It belongs to the lock, as its queue may be empty for a moment.
type Streak struct {
	Count     int       // since the lock was free, without those to a successor that came First
	Began     int64     // the second one, by the server's clock in milliseconds; 0 if not noted
	Here      int       // hand-overs within this process since the lock came to it
	HereSince time.Time // zero if there was none
}

// Ticket tells successive registrations of one owner apart; 0 is none.
type Ticket int64

// Grant describes a lock that was given to a waiter.
type Grant struct {
	Since  time.Time // the lease began after this
	Local  bool      // by a release of this client
	Fence  int64
	Streak Streak
}

// Message says that a release, perhaps in another process, has granted the lock to a registration.
type Message struct {
	Owner  string
	Ticket Ticket
	Local  bool // that release was by this client
	Fence  int64
	Streak Streak
}

// Offer names the successor of a release that is under way.
type Offer[Name comparable, Data any] struct {
	Streak    Streak              // of the lock, until now
	Successor *Waiter[Name, Data] // whom to give the lock to; nil if there is none
	First     bool                // it comes before waiters in other processes
}

// Offer picks the head of a queue as the successor of a release that is about to be sent, or that
// may register it instead if registers is set. If it finds one, the caller calls Settle. A caller
// that knows from [Queues.Has] that there is no queue need not call Offer.
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
	o.First = s.Here < longestStreak &&
		(s.HereSince.IsZero() || time.Since(s.HereSince) < longestStreakTime)
	if registers && !o.First {
		// Another process may grant it the lock before the reply to the release arrives.
		qs.registered[w.Owner] = w
	}
	return o
}

// After returns the streak once the successor holds the lock, by a release sent at the given time.
// began is Streak.Began if noted.
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

// Release says how a release with an offer ended.
type Release struct {
	Outcome Outcome
	Sent    time.Time
	Ticket  Ticket // of a registered successor
	Fence   int64  // of a successor that has the lock
	Began   int64  // Streak.Began of a successor that has the lock
	Late    bool   // if Uncertain: it may still be executed at any time
}

// Outcome tells what a release meant for its successor.
type Outcome uint8

// The outcomes of a release. From Uncertain on the successor may have the lock or a registration.
const (
	ToAll               Outcome = iota // announced to all, or another owner has the lock
	ToNobody                           // not announced: the lock may be free, or the successor's
	Uncertain                          // it may have been executed, or may still be
	ToSuccessor                        // the successor has the lock
	SuccessorRegistered                // another owner has it, and the successor is registered
)

// Settle records the result of a release with a successor. It returns true if the successor has
// left without the lock but may now have it, or a registration: the caller cleans up.
func (o Offer[Name, Data]) Settle(r Release) (abandoned bool) {
	w := o.Successor
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	before, remains := w.state, r.Outcome >= Uncertain
	w.state.step(settle)
	if before == LeftOffered || before == Acquired {
		return remains && before == LeftOffered
	}
	w.registered, w.late = w.registered || remains, w.late || r.Late
	switch r.Outcome {
	case ToSuccessor:
		w.giveGrant(Grant{r.Sent, true, r.Fence, o.After(r.Sent, r.Began)})
	case SuccessorRegistered:
		if r.Sent.Before(w.asked) {
			w.wakeFor(Retry) // it has asked since, and may have another registration
		} else if !w.state.asking() { // otherwise the reply also has the ticket
			w.ticket, w.asked = r.Ticket, r.Sent
		}
	case Uncertain, ToNobody:
		w.wakeFor(Retry)
	}
	w.readMessages()
	return false
}

// readMessages handles messages once the ticket of the waiter is certain. Queues.mu must be held.
func (w *Waiter[Name, Data]) readMessages() {
	if w.state.asking() || w.state == Offered {
		return
	}
	for _, m := range w.unread {
		switch {
		case w.ticket == 0:
			w.wakeFor(Retry) // the server decides
		case m.Ticket == w.ticket:
			w.giveGrant(Grant{Since: w.asked, Local: m.Local, Fence: m.Fence, Streak: m.Streak})
		case m.Ticket > w.ticket:
			w.wakeFor(Retry) // of a newer registration, whose reply is missing
		}
	}
	w.unread = nil
}

// Deliver passes a message to its waiter, and reports whether there is one in a matching queue.
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

// Ask notes that the waiter sends a request, and reports whether that should register it: if
// registers is set, and it hears grants. It also should if the waiter may be registered already,
// because only a request that registers ends a registration when it gets the lock.
func (w *Waiter[Name, Data]) Ask(registers, hears bool) bool {
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	w.state.step(ask)
	w.ticket, w.given = 0, Grant{} // the reply decides, also if too little was left of a grant
	w.woken()                      // the request is what it was woken for
	if !registers || !hears && !w.registered {
		return false
	}
	w.registered = true
	qs.registered[w.Owner] = w
	return true
}

// Reply notes that the request sent at the given time is over. t is the ticket of the refusal, if
// it has one. Reply returns the grant if the waiter was given the lock in the meantime.
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
