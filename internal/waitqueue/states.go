package waitqueue

import "holdfast/internal/transition"

// State is the state of a waiter.
type State uint8

// The states of a waiter.
const (
	Waiting       State = iota + 1 // the waiter sleeps, at the head or behind it
	Asking                         // the waiter's request is under way
	Offered                        // a release that names the waiter as successor is under way
	OfferedAsking                  // both are under way
	Granted                        // the waiter was given the lock, and has not noticed yet
	Acquired                       // the waiter left with the lock, and ignores late replies
	Left                           // the waiter left without the lock
	LeftOffered                    // the waiter left while a release that names it is under way
	states
)

// event changes the state of a waiter.
type event uint8

const (
	ask     event = iota // the waiter sends a request
	reply                // the request ends without the lock
	offer                // a release is sent that names the waiter
	settle               // that release ends
	grant                // a release gives the lock to the waiter
	acquire              // the waiter leaves the queue with the lock, by a request or a grant
	leave                // the waiter leaves without the lock
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
