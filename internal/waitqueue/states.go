package waitqueue

import (
	"fmt"
	"testing"
)

// State is the state of a waiter. The package documentation shows the transitions.
type State uint8

// The states of a waiter.
const (
	Waiting       State = iota // it sleeps, at the head or behind it
	Asking                     // its request is under way
	Offered                    // a release that names it as successor is under way
	OfferedAsking              // both
	Granted                    // it was given the lock, and has not noticed yet
	Acquired                   // it has the lock; late replies are ignored
	Left                       // it left without the lock
	LeftOffered                // it left, and a release that names it is under way
	states
)

// event changes the state of a waiter.
type event uint8

const (
	ask     event = iota // it sends a request
	answer               // the request is over, without the lock
	offer                // a release that names it is sent
	settle               // that release is over
	grant                // it is given the lock
	acquire              // it has the lock, by a request or a grant
	leave                // it leaves the queue
	events
)

// transitions lists the next state for each state and event. A missing transition is a bug.
var transitions = [states][events]State{
	Waiting: {ask: to(Asking), offer: to(Offered), grant: to(Granted), acquire: to(Acquired),
		leave: to(Left)},
	Asking: {answer: to(Waiting)},
	Offered: {
		ask:     to(OfferedAsking),
		settle:  to(Waiting),
		acquire: to(Acquired),
		leave:   to(LeftOffered),
	},
	OfferedAsking: {answer: to(Offered), settle: to(Asking)},
	Granted:       {ask: to(Asking), acquire: to(Acquired), leave: to(Left)},
	Acquired:      {settle: to(Acquired), leave: to(Acquired)},
	LeftOffered:   {settle: to(Left)},
}

// to encodes a transition: the zero value of the table is none.
func to(s State) State { return s + 1 }

// step changes the state of a waiter. A transition that does not exist changes nothing, and panics
// under test.
func (s *State) step(e event) {
	next := transitions[*s][e]
	if next == 0 {
		if testing.Testing() {
			panic(fmt.Sprintf("waitqueue: no %v in state %v", e, *s))
		}
		return
	}
	*s = next - 1
}

// asking reports whether a request is under way.
func (s State) asking() bool { return s == Asking || s == OfferedAsking }

// offered reports whether a release that names the waiter is under way while it waits.
func (s State) offered() bool { return s == Offered || s == OfferedAsking }

// left reports whether the waiter is no longer in the queue.
func (s State) left() bool { return s == Left || s == LeftOffered || s == Acquired }

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"Waiting", "Asking", "Offered", "OfferedAsking", "Granted", "Acquired",
		"Left", "LeftOffered"}[s]
}

func (e event) String() string {
	return [...]string{"ask", "answer", "offer", "settle", "grant", "acquire", "leave"}[e]
}

// Registration tells what the server may know of a waiter.
type Registration uint8

// The registrations of a waiter.
const (
	Unregistered    Registration = iota // it knows nothing
	MaybeRegistered                     // it may be registered, with a ticket that is not known
	Registered                          // it was registered with its ticket when it last asked
)
