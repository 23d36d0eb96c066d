package waitqueue

import (
	"cmp"
	"time"
)

// A lock stays in a process for so many hand-overs and for so long, if others wait for it
// elsewhere.
const (
	longestStreak     = 16
	longestStreakTime = 100 * time.Millisecond
)

// Streak is how often and for how long a lock was passed on: here, and in all. It goes on with the
// lock and not with the queue, which may be empty for a moment.
type Streak struct {
	Count int   // how often it was passed on since it was free, without the times that count as here
	Began int64 // when it was first passed on, by the server's clock in milliseconds; 0 = not noted

	Here      int       // how often it has stayed in this process since it came
	HereSince time.Time // zero: it has not
}

// Stays reports whether the lock may stay in this process.
func (sk Streak) Stays() bool {
	return sk.Here < longestStreak &&
		(sk.HereSince.IsZero() || time.Since(sk.HereSince) < longestStreakTime)
}

// Ticket tells registrations apart that an owner has one after the other; 0 is none.
type Ticket int64

// Grant is a lock that a waiter was given.
type Grant struct {
	Since  time.Time // its lease began after that
	Fence  int64
	Streak Streak
}

// Message says that a release in another process has granted the lock to a registration.
type Message struct {
	Owner  string
	Ticket Ticket
	Fence  int64
	Streak Streak
}

// Offer is a release under way, to a successor if there is one.
type Offer[Name comparable, Data any] struct {
	streak    Streak // until now
	successor *Waiter[Name, Data]
	first     bool // it comes before those who wait elsewhere
}

// NoOffer is a release without a successor.
func NoOffer[Name comparable, Data any](s Streak) Offer[Name, Data] {
	return Offer[Name, Data]{streak: s}
}

// Offer picks the head of a queue as the successor of a release that is about to be sent. registers
// says that the release may register it instead. The caller settles an offer with a successor.
func (qs *Queues[Name, Data]) Offer(name Name, s Streak, registers bool) Offer[Name, Data] {
	o := NoOffer[Name, Data](s)
	if qs.slot(name).queues.Load() == 0 {
		return o
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[name]
	if q == nil {
		return o
	}
	w := q.waiters.Front().Value.(*Waiter[Name, Data])
	if w.state != Waiting {
		return o
	}
	w.state.step(offer)
	o.successor, o.first = w, s.Stays()
	if registers && !o.first {
		// Somebody else may grant it the lock before the answer to the release is here.
		qs.registered[w.Owner] = w
	}
	return o
}

// Streak returns that of the lock until the release.
func (o Offer[Name, Data]) Streak() Streak { return o.streak }

// Successor returns who is to be given the lock, and whether before those who wait elsewhere; ok is
// false if there is nobody.
func (o Offer[Name, Data]) Successor() (c Candidate, first, ok bool) {
	if o.successor == nil {
		return Candidate{}, false, false
	}
	return o.successor.Candidate, o.first, true
}

// After returns the streak once the successor has the lock, by a release that was sent at the given
// time; began is Streak.Began if the release has noted it. Staying in the process first does not
// count towards Count: it has bounds of its own.
func (o Offer[Name, Data]) After(sent time.Time, began int64) Streak {
	s := o.streak
	if !o.first {
		s.Count++
		s.Began = cmp.Or(s.Began, began)
	}
	if !o.first || s.HereSince.IsZero() {
		s.Here, s.HereSince = 0, sent // if it was not first, nobody waits elsewhere
	}
	s.Here++
	return s
}

// Release is what became of an offer.
type Release struct {
	Outcome Outcome
	Sent    time.Time
	Ticket  Ticket // of a successor that was registered
	Fence   int64  // of a successor that has the lock
	Began   int64  // as Streak.Began, of a successor that has the lock
	Late    bool   // if Uncertain: it may be executed at any time still
}

// Outcome is how a release ended for its successor.
type Outcome uint8

// The outcomes of a release.
const (
	ToAll               Outcome = iota // everybody was told, or somebody else has the lock
	ToNobody                           // nobody was told: the lock may be free, or the successor's
	Uncertain                          // it may have been executed, or may be still
	ToSuccessor                        // the successor has the lock
	SuccessorRegistered                // somebody else has it, and the successor is registered
)

// Settle notes what became of a release. It returns true if the successor has left without the
// lock, and may have that or a registration now: the caller cleans up.
func (o Offer[Name, Data]) Settle(r Release) (abandoned bool) {
	w := o.successor
	if w == nil {
		return false
	}
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	remains := r.Outcome == Uncertain || r.Outcome == ToSuccessor ||
		r.Outcome == SuccessorRegistered
	left, acquired := w.state.left(), w.state == Acquired
	w.state.step(settle)
	if left {
		return remains && !acquired
	}
	if remains && w.registration == Unregistered {
		w.registration = MaybeRegistered
	}
	w.late = w.late || r.Late
	switch r.Outcome {
	case ToSuccessor:
		w.giveGrant(Grant{r.Sent, r.Fence, o.After(r.Sent, r.Began)})
	case SuccessorRegistered:
		if r.Sent.Before(w.asked) {
			w.wakeFor(Retry) // it has asked since, and may have another registration by now
		} else {
			w.register(r.Ticket, r.Sent)
		}
	case Uncertain, ToNobody:
		w.wakeFor(Retry)
	case ToAll:
	}
	w.readMessages()
	return false
}

// giveGrant lets the waiter have the lock: at once, or when its request is over. qs.mu must be held.
func (w *Waiter[Name, Data]) giveGrant(g Grant) {
	switch {
	case w.state == Granted:
	case w.state.asking():
		w.given = g
	default:
		w.state.step(grant)
		w.given = g
		w.signal()
	}
}

// register notes that the waiter is registered. qs.mu must be held.
func (w *Waiter[Name, Data]) register(t Ticket, asked time.Time) {
	w.queue.all.registered[w.Owner] = w
	if w.registration == Unregistered {
		w.registration = MaybeRegistered
	}
	if w.state.asking() {
		return // the answer has the ticket too
	}
	w.registration, w.ticket, w.asked = Registered, t, asked
	w.readMessages()
}

// readMessages looks at the messages that came while it was not known whether to believe them. qs.mu must
// be held.
func (w *Waiter[Name, Data]) readMessages() {
	if w.state.asking() || w.state.offered() {
		return
	}
	unread := w.unread
	w.unread = nil
	for _, m := range unread {
		switch {
		case w.registration != Registered:
			w.wakeFor(Retry) // the server says which of them is right
		case m.Ticket == w.ticket:
			w.giveGrant(Grant{Since: w.asked, Fence: m.Fence, Streak: m.Streak})
		case m.Ticket > w.ticket:
			w.wakeFor(Retry) // of a registration that it does not know of
		}
	}
}

// Deliver gives a message to its waiter, if its queue matches. It returns false if nobody here
// waits for the message.
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

// Ask notes that the waiter is about to send a request, and returns whether that may register it.
// It may if registers is set, and if it hears of a grant or may be registered already: then the
// request gives the registration up, with the same command, when the lock is free.
func (w *Waiter[Name, Data]) Ask(registers, hears bool) bool {
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if w.state == Granted || w.registration == Registered {
		w.registration = MaybeRegistered // of a grant too little was left; the answer tells
	}
	w.state.step(ask)
	w.given = Grant{}
	w.clearSignal()
	if !registers || !hears && w.registration == Unregistered {
		return false
	}
	w.registration = MaybeRegistered
	qs.registered[w.Owner] = w
	return true
}

// Answer notes that a request is over that was sent at the given time, with the ticket of a refusal
// if it has one. It returns the grant if the waiter was given the lock meanwhile.
func (w *Waiter[Name, Data]) Answer(t Ticket, asked time.Time) (Grant, bool) {
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	w.state.step(answer)
	early := w.given
	if t != 0 {
		w.register(t, asked)
	}
	if !early.Since.IsZero() && w.state == Waiting {
		w.giveGrant(early)
	}
	w.readMessages()
	if w.state != Granted {
		return Grant{}, false
	}
	w.clearSignal()
	return w.given, true
}

// Acquire notes that the waiter has the lock, and leaves with it.
func (w *Waiter[Name, Data]) Acquire() {
	qs := w.queue.all
	qs.mu.Lock()
	defer qs.mu.Unlock()
	w.state.step(acquire)
}
