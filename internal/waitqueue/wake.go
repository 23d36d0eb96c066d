package waitqueue

import (
	"time"

	"holdfast/internal/wait"
)

// Reason is why Wait or Park returned.
type Reason uint8

// The reasons are ordered. The greatest reason prevails.
const (
	Ended      Reason = iota // the budget ended
	Paused                   // the pause is over, or the other channel fired
	BecameHead               // the waiter became the head, without a reason to ask
	Retry                    // the waiter is the head, and should ask
	HasGrant                 // a release gave the lock to the waiter
)

// Wait blocks until the waiter wakes up or b ends. A waiter behind the head wakes up when it
// becomes the head or is given the lock. The head also wakes up when there is a reason to ask.
func (w *Waiter[Name, Data]) Wait(b *wait.Budget) (Reason, Grant) {
	return w.Park(b, wait.Unlimited, nil)
}

// Park blocks like Wait, for the head. Park also returns after pause, or when the channel also
// fires.
func (w *Waiter[Name, Data]) Park(b *wait.Budget, pause time.Duration, also <-chan struct{},
) (Reason, Grant) {
	if !b.Sleep(pause, w.wake, also) {
		return Ended, Grant{}
	}
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return max(w.woken(), Paused), w.given
}

// wakeFor makes Wait and Park return for a reason. The caller holds Queues.mu. Three events wake a
// waiter:
//
//   - Leave of the head, if the waiter becomes the head (queue.go);
//   - the outcome of a release that names the waiter (handover.go);
//   - a grant message for the waiter (handover.go).
//
// A message on the channel of the lock does not call wakeFor. The message fires the other channel
// of Park (permit in pubsub/subscription.go, called from pubsub/channel.go).
func (w *Waiter[Name, Data]) wakeFor(r Reason) {
	w.reason = max(w.reason, r)
	wait.Fire(w.wake)
}

// woken returns the reason for waking, and resets it. The caller holds Queues.mu.
func (w *Waiter[Name, Data]) woken() Reason {
	reason := w.reason
	w.reason = Ended
	wait.Fired(w.wake)
	return reason
}

// giveGrant gives the waiter the lock, at once or after the waiter's request. The caller holds
// Queues.mu.
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
