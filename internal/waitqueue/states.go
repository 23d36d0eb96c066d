package waitqueue

import (
	"fmt"
	"testing"
)

// State is how far a waiter has come. See the package documentation for the drawing.
type State uint8

// The states of a waiter.
const (
	Waiting       State = iota // it sleeps, at the head or behind
	Asking                     // its request is under way
	Offered                    // a release that names it as successor is under way
	OfferedAsking              // both
	Granted                    // it was given the lock, and has not taken it yet
	Acquired                   // it has the lock for good: late replies are ignored
	Left                       // it has gone without the lock
	LeftOffered                // it has gone, and a release that names it is under way
	states
)

// event is what changes a state.
type event uint8

const (
	ask     event = iota // it sends a request
	answer               // the request is over, without the lock
	offer                // a release that names it is sent
	settle               // that release is over
	grant                // it is given the lock
	acquire              // it has the lock, by a request or a grant
	leave                // it goes
	events
)

// transitions has the next state for each state and event. What is not here is a bug.
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

// to marks a transition as existing: the zero value of the table is none.
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

// offered reports whether a release that names the waiter is under way, while that waits.
func (s State) offered() bool { return s == Offered || s == OfferedAsking }

// left reports whether the waiter is in the queue no more.
func (s State) left() bool { return s == Left || s == LeftOffered || s == Acquired }

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"Waiting", "Asking", "Offered", "OfferedAsking", "Granted", "Acquired", "Left",
		"LeftOffered"}[s]
}

func (e event) String() string {
	return [...]string{"ask", "answer", "offer", "settle", "grant", "acquire", "leave"}[e]
}

// Registration is what the server may know of a waiter.
type Registration uint8

// The registrations of a waiter.
const (
	Unregistered    Registration = iota // nothing
	MaybeRegistered                     // it may be registered, with a ticket that is not known
	Registered                          // it was registered with its ticket when it last asked
)
