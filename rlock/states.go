package rlock

import (
	"fmt"
	"testing"
)

// state is the state of an acquisition. The package documentation shows the transitions.
type state uint8

const (
	active      state = iota // with one level or more
	releasing                // the last level is released; Redis has not confirmed it
	released                 // Redis has confirmed it
	unconfirmed              // nobody waits for the confirmation
	lost                     // it can no longer be trusted, or never could
	closed                   // the client was closed
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
	events
)

// transitions lists the next state for each state and event. A missing transition is a bug.
var transitions = [states][events]state{
	active:      {release: to(releasing), lose: to(lost), shut: to(closed)},
	releasing:   {confirm: to(released), giveUp: to(unconfirmed), lose: to(lost)},
	unconfirmed: {confirm: to(released)},
	released:    {giveUp: to(released)}, // the reply came just when its caller left
	closed:      {confirm: to(released), giveUp: to(unconfirmed), lose: to(lost)},
}

// to encodes a transition: the zero value of the table is none.
func to(s state) state { return s + 1 }

// step changes the state of an acquisition. A transition that does not exist changes nothing, and
// panics under test.
func (s *state) step(e event) {
	if next := transitions[*s][e]; next != 0 {
		*s = next - 1
	} else if testing.Testing() {
		illegal(fmt.Sprintf("rlock: no %v of an acquisition that is %v", e, *s))
	}
}

// illegal reports a bug.
var illegal = func(bug string) { panic(bug) }

func (s state) String() string {
	return [...]string{"held", "releasing", "released", "unconfirmed", "lost", "closed"}[s]
}

func (ev event) String() string {
	return [...]string{"release", "confirm", "giveUp", "lose", "shut"}[ev]
}
