package redlock

import (
	"slices"

	"holdfast/internal/transition"
)

// An acquisition and its part on each node have states. When an acquisition ends, the release of a
// granted part is due, and a requested part is unwanted:
//
//	asking ─▶ held ─▶ releasing ─▶ released    missing ◀─▶ asked ─▶ granted ─▶ missing
//	   │       ├─▶ lost                                      │         └─▶ release due, kept
//	   ▼       └─▶ closed, left                              └─▶ unwanted ─▶ gone
//	failed                                     release due ─▶ kept
//	           release due, unwanted ─▶ release sent ─▶ freed, gone, release due, kept

// phase is the state of an acquisition.
type phase string

const (
	asking    phase = "asking"    // no quorum has granted the lock yet
	held      phase = "held"      // a quorum has granted the lock
	releasing phase = "releasing" // the last level is released; its caller waits for the nodes
	released  phase = "released"  // nobody waits for the nodes any more
	failed    phase = "failed"    // no quorum has granted the lock in time
	lost      phase = "lost"      // a quorum does not hold the lock any more
	closed    phase = "closed"    // the clients of too many nodes were closed
	left      phase = "left"      // the holder lets the leases run out
)

// phases lists the phases that may follow each phase. Any other change is a bug.
var phases = map[phase][]phase{
	asking:    {held, failed},
	held:      {releasing, lost, closed, left},
	releasing: {released},
}

// over reports whether the acquisition has failed or ended.
func (ph phase) over() bool { return ph != asking && ph != held }

// state is the state of a part.
type state string

const (
	missing  state = "missing" // not requested, not granted, or lost
	asked    state = "asked"   // its request is under way
	granted  state = "granted"
	unwanted state = "unwanted" // its request is under way, and the acquisition is over

	releaseDue  state = "release due"  // the acquisition is over; no release is under way
	releaseSent state = "release sent" // its release is under way
	freed       state = "freed"        // held until its release
	gone        state = "gone"         // not held any more, or not granted
	kept        state = "kept"         // until its lease ends, after a rejected release or Leave
)

// states lists the states that may follow each state of a part. Any other change is a bug.
var states = map[state][]state{
	missing:     {asked},
	asked:       {granted, missing, unwanted},
	granted:     {missing, releaseDue, kept},
	unwanted:    {gone, releaseSent},
	releaseDue:  {releaseSent, kept},
	releaseSent: {freed, gone, releaseDue, kept},
}

func (ph *phase) enter(next phase) {
	if !slices.Contains(phases[*ph], next) {
		transition.Missing(*ph, next)
		return
	}
	*ph = next
}

func (s *state) enter(next state) {
	if !slices.Contains(states[*s], next) {
		transition.Missing(*s, next)
		return
	}
	*s = next
}
