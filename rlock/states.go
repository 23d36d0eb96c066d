package rlock

import "holdfast/internal/transition"

// state is the state of an acquisition. docs/architecture.md draws the transitions.
type state uint8

const (
	active      state = iota // with one level or more
	releasing                // the last level is released; Redis has not confirmed it
	released                 // Redis has confirmed it
	unconfirmed              // nobody waits for the confirmation
	lost                     // it can no longer be trusted, or never could
	closed                   // the client was closed
	left                     // its lease runs out, as its holder wants
	states
)

// event changes the state of an acquisition.
type event uint8

const (
	release event = iota // the last level is released
	confirm              // Redis confirms the release
	giveUp               // nobody waits for the confirmation any more
	lose                 // it is found lost
	shut                 // the client closes
	leave                // the last level is left, to let the lease run out
	events
)

// transitions lists the next state for each state and event. A missing transition is a bug; none
// leads to active, the zero value.
var transitions = [states][events]state{
	active:      {release: releasing, lose: lost, shut: closed, leave: left},
	releasing:   {confirm: released, giveUp: unconfirmed, lose: lost},
	unconfirmed: {confirm: released},
	released:    {giveUp: released}, // the reply came just as its caller left
	closed:      {confirm: released, giveUp: unconfirmed, lose: lost},
}

func (s *state) step(e event) {
	next := transitions[*s][e]
	transition.To(s, next, next != active, e)
}
