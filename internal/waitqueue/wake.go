package waitqueue

import (
	"time"

	"holdfast/internal/wait"
)

// Reason tells why Wait or Park returned.
type Reason uint8

// The reasons are ordered: the greatest prevails.
const (
	Ended      Reason = iota // the budget ended
	Paused                   // the pause is over, or the other channel fired
	BecameHead               // it became head, without a reason to ask
	Retry                    // it is head, and should ask
	HasGrant                 // it was given the lock
)

// Wait blocks until the waiter is woken or b ends. A waiter behind the head is woken when it
// becomes head or is given the lock; the head also when there is a reason to ask.
func (w *Waiter[Name, Data]) Wait(b *wait.Budget) (Reason, Grant) {
	return w.Park(b, wait.Unlimited, nil)
}

// Park blocks like Wait, for the head. It also returns after pause, or when also fires.
func (w *Waiter[Name, Data]) Park(b *wait.Budget, pause time.Duration, also <-chan struct{},
) (Reason, Grant) {
	if !b.Sleep(pause, w.wake, also) {
		return Ended, Grant{}
	}
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return max(w.woken(), Paused), w.given
}

// wakeFor makes Wait and Park return, for a reason. These wake a waiter:
//   - Leave, if it becomes the head (queue.go);
//   - the outcome of a release that names it, or a grant message for it (handover.go).
//
// A message on the lock's channel fires the other channel of Park (pubsub: channel.go, then permit
// in subscription.go). Queues.mu must be held.
func (w *Waiter[Name, Data]) wakeFor(r Reason) {
	w.reason = max(w.reason, r)
	wait.Fire(w.wake)
}

// woken returns the reason why the waiter was woken, and resets it. Queues.mu must be held.
func (w *Waiter[Name, Data]) woken() Reason {
	reason := w.reason
	w.reason = Ended
	wait.Fired(w.wake)
	return reason
}

// giveGrant gives the waiter the lock: at once, or after its request. Queues.mu must be held.
func (w *Waiter[Name, Data]) giveGrant(g Grant) {
	if w.state == Granted {
		return
	}
	w.given = g
	if !w.state.asking() {
		w.state.step(grant)
		w.wakeFor(HasGrant)
	}
}
