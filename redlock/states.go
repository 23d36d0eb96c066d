package redlock

import (
	"fmt"
	"testing"
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
	phases
)

// over reports whether the acquisition has failed or ended.
func (ph phase) over() bool { return ph > held }

// event changes the phase of an acquisition.
type event uint8

const (
	succeed event = iota // a quorum has granted it
	fail                 // no quorum has
	release              // the last level is released
	settle               // nobody waits for the nodes any more
	lose                 // it is found lost
	shut                 // too many clients close
	events
)

// phaseTransitions lists the next phase for each phase and event. A missing transition is a bug.
var phaseTransitions = [phases][events]phase{
	asking:    {succeed: to(held), fail: to(failed)},
	held:      {release: to(releasing), lose: to(lost), shut: to(closed)},
	releasing: {settle: to(released)},
}

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
	states
)

// partEvent changes the state of a part.
type partEvent uint8

const (
	ask     partEvent = iota // its request is sent
	grant                    // the node grants it
	deny                     // the node does not, or the request was not carried out
	drop                     // it is lost, or its client was closed
	end                      // the acquisition is over
	send                     // its release is sent
	confirm                  // the node has released it
	miss                     // the node did not hold it
	retry                    // the release has failed
	refuse                   // the release never succeeds
	partEvents
)

// partTransitions lists the next state for each state and event. A missing transition is a bug.
var partTransitions = [states][partEvents]state{
	missing: {ask: to(asked)},
	asked:   {grant: to(granted), deny: to(missing), end: to(late)},
	granted: {drop: to(missing), end: to(due)},
	late:    {deny: to(gone), send: to(sent)},
	due:     {send: to(sent), retry: to(due), refuse: to(kept)},
	sent:    {confirm: to(freed), miss: to(gone), retry: to(due), refuse: to(kept)},
}

// to encodes a transition: the zero value of a table is none.
func to[S ~uint8](s S) S { return s + 1 }

func (ph *phase) step(e event)    { step(ph, e, phaseTransitions[*ph][e]) }
func (s *state) step(e partEvent) { step(s, e, partTransitions[*s][e]) }

// step changes a state by an event. A transition that does not exist changes nothing, and panics
// under test.
func step[S, E ~uint8](s *S, e E, next S) {
	if next != 0 {
		*s = next - 1
	} else if testing.Testing() {
		illegal(fmt.Sprintf("redlock: no %v in state %v", e, *s))
	}
}

// illegal reports a bug.
var illegal = func(bug string) { panic(bug) }

func (ph phase) String() string {
	return [...]string{"asking", "held", "releasing", "released", "failed", "lost", "closed"}[ph]
}

func (ev event) String() string {
	return [...]string{"succeed", "fail", "release", "settle", "lose", "shut"}[ev]
}

func (s state) String() string {
	return [...]string{"missing", "asked", "granted", "late", "due", "sent", "freed", "gone",
		"kept"}[s]
}

func (pe partEvent) String() string {
	return [...]string{"ask", "grant", "deny", "drop", "end", "send", "confirm", "miss", "retry",
		"refuse"}[pe]
}
