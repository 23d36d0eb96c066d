package redlock

import (
	"slices"

	"holdfast/internal/transition"
)

// phase is the state of an acquisition. The package documentation shows the transitions.
type phase uint8

const (
	asking    phase = iota // no quorum has granted it yet
	held                   // a quorum has granted it
	releasing              // the last level is released; its caller waits for the nodes
	released               // nobody waits for the nodes any more
	failed                 // no quorum has granted it in time
	lost                   // a quorum does not hold it any more
	closed                 // the clients of too many nodes were closed
)

// phases lists the phases that may follow each phase. Any other is a bug.
var phases = [...][]phase{
	asking:    {held, failed},
	held:      {releasing, lost, closed},
	releasing: {released},
	closed:    nil,
}

// over reports whether the acquisition has failed or ended.
func (ph phase) over() bool { return ph > held }

// state is the state of a part.
type state uint8

const (
	missing state = iota // nothing is held: it was not asked for, not granted, or lost
	asked                // its request is under way
	granted
	late  // its request is under way, and the acquisition is over
	due   // to be released: no release is under way
	sent  // its release is under way
	freed // it was held until its release
	gone  // it was not held any more, or not granted
	kept  // the node refuses to release it, and keeps it until its lease ends
)

// states lists the states that may follow each state. Any other is a bug.
var states = [...][]state{
	missing: {asked},
	asked:   {granted, missing, late},
	granted: {missing, due},
	late:    {gone, sent},
	due:     {sent, kept},
	sent:    {freed, gone, due, kept},
	kept:    nil,
}

func (ph *phase) enter(next phase) {
	transition.To(ph, next, slices.Contains(phases[*ph], next), next)
}

func (s *state) enter(next state) {
	transition.To(s, next, slices.Contains(states[*s], next), next)
}

func (ph phase) String() string {
	return [...]string{"asking", "held", "releasing", "released", "failed", "lost", "closed"}[ph]
}

func (s state) String() string {
	return [...]string{"missing", "asked", "granted", "late", "due", "sent", "freed", "gone",
		"kept"}[s]
}
