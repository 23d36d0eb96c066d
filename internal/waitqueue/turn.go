package waitqueue

import "time"

// Turn is a lock that its holder passes on to the head of the local queue without a command. The
// server does not learn of it. Until the next release that is a command, the server knows the
// holder by the name of the first one.
type Turn struct {
	Owner string    // the name of the holder on the server
	Until time.Time // how long the lock can be trusted
}

// TakeTurns makes the waiter take turns until it asks. The caller has checked that nothing of the
// waiter is on the server.
func (w *Waiter[Name, Data]) TakeTurns() {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.turns = w.state == Waiting
}

// Turn returns the turn that the waiter was given and has not noticed yet. Without one, Turn makes
// sure that the waiter gets none until it leaves, because the waiter is about to ask.
func (w *Waiter[Name, Data]) Turn() (Grant, bool) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.turns = false
	if w.given.Turn.Owner == "" {
		return Grant{}, false
	}
	w.woken()
	return w.given, true
}

// Known reports whether the server may have a registration of the waiter.
func (w *Waiter[Name, Data]) Known() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.registered || w.late
}

// Decline gives up the turn of the waiter. The caller releases the lock.
func (w *Waiter[Name, Data]) Decline() {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.given.Turn = Turn{}
}

// UnusedTurn returns the turn that a waiter had when it left without the lock; zero if it had none.
// Call UnusedTurn after [Waiter.Leave].
func (w *Waiter[Name, Data]) UnusedTurn() Turn { return w.given.Turn }

// Pass gives the lock to the head of a queue without a command, and reports whether it did. The
// caller has checked that no command for the owner of the turn can be executed any more.
//
// Pass returns false if the server must decide who is next, because the lock was in this process
// for long enough. Pass also returns false if nobody waits, or if something of the head may be on
// the server. A registration there would get the lock later, although the head has had it by then.
func (qs *Queues[Name, Data]) Pass(name Name, s Streak, t Turn) bool {
	if s.HereSince.IsZero() || !s.stays() {
		return false
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	w := qs.byName[name].head()
	if w == nil || w.state != Waiting || !w.turns || w.registered || w.late {
		return false
	}
	s.Here++
	w.giveGrant(Grant{Since: s.HereSince, Local: true, Streak: s, Turn: t})
	return true
}
