package waitqueue

import "holdfast/internal/transition"

// State is the state of a waiter.
type State uint8

// The states of a waiter.
const (
	Waiting       State = iota + 1 // it sleeps, at the head or behind it
	Asking                         // its request is under way
	Offered                        // a release that names it as successor is under way
	OfferedAsking                  // both
	Granted                        // it was given the lock, and has not noticed yet
	Acquired                       // it left with the lock; late replies are ignored
	Left                           // it left without the lock
	LeftOffered                    // it left, and a release that names it is under way
	states
)

// event changes the state of a waiter.
type event uint8

const (
	ask     event = iota // it sends a request
	reply                // the request is over, without the lock
	offer                // a release that names it is sent
	settle               // that release is over
	grant                // it is given the lock
	acquire              // it leaves the queue with the lock, by a request or a grant
	leave                // it leaves without the lock
	events
)

// transitions lists the next state for each state and event. A missing transition is a bug.
var transitions = [states][events]State{
	Waiting:       {ask: Asking, offer: Offered, grant: Granted, acquire: Acquired, leave: Left},
	Asking:        {reply: Waiting},
	Offered:       {ask: OfferedAsking, settle: Waiting, acquire: Acquired, leave: LeftOffered},
	OfferedAsking: {reply: Offered, settle: Asking},
	Granted:       {ask: Asking, acquire: Acquired, leave: Left},
	Acquired:      {settle: Acquired},
	LeftOffered:   {settle: Left},
}

func (s *State) step(e event) {
	next := transitions[*s][e]
	if next == 0 {
		transition.Missing(*s, e)
		return
	}
	*s = next
}

// asking reports whether a request is under way.
func (s State) asking() bool { return s == Asking || s == OfferedAsking }

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"", "Waiting", "Asking", "Offered", "OfferedAsking", "Granted", "Acquired",
		"Left", "LeftOffered"}[s]
}

func (e event) String() string {
	return [...]string{"ask", "reply", "offer", "settle", "grant", "acquire", "leave"}[e]
}
