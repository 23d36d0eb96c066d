package history

import (
	"fmt"
	"slices"
	"time"
)

// lingering is how long those in line count after they have left it, for locks that keep a place for them: a fair lock
// passes over one whose process hangs ten seconds after its turn has come, which is seen by those who look every five.
const lingering = 15 * time.Second

// refusals: an attempt without wait is refused only if somebody else has the lock, or may have it, or is in line for it in the
// same process, where only the first in line asks Redis. For locks with a queue in Redis those in line anywhere count. It is
// judged only if Bounds.Strict.
//
// It is no operation of the linearizable history: then those of unknown outcome would have to be, each with a choice.
func (h *History) refusals(bounds Bounds, verdict *Verdict) {
	if !bounds.Strict {
		return
	}
	m := h.memory(bounds)
	rivals := map[string]*spans{}
	for name, parts := range h.names() {
		rivals[name] = h.rivals(m, parts)
	}
	for _, a := range h.Acquisitions {
		if a.Outcome != Refused || a.Wait != 0 || m.givenUp(a, a.Answered) || h.faulty(a.Process, a.Asked, a.Answered) ||
			m.forgetting(a.Asked.Add(-bounds.Lease-bounds.Command), a.Answered) { // what was released may be held again
			continue
		}
		verdict.Judged[Linearizable]++
		if !slices.ContainsFunc(a.Locks, func(lock Lock) bool { return refusable(a, lock.Kind, rivals[lock.Name]) }) {
			verdict.breach(Breach{Invariant: Linearizable, At: a.Asked, Between: []*Acquisition{a},
				Text: fmt.Sprintf("%v was refused, but nobody else can have had it: %s", a, a.Error)})
		}
	}
}

// refusable tells whether somebody else may have been in a's way.
func refusable(a *Acquisition, kind Kind, rivals *spans) bool {
	for rival := range rivals.during(a.Asked, a.Answered) {
		everywhere := kind == Fair || kind == Read || kind == Write || kind == Quorum || len(rival.Locks) > 1 || len(a.Locks) > 1
		if rival.owner() != a.owner() && (!rival.inLine || everywhere || rival.Process == a.Process) {
			return true
		}
	}
	return false
}

// rivals gives the times during which somebody may have the lock, or was in line for it.
func (h *History) rivals(m *memory, parts []part) *spans {
	var all spans
	windows := m.windows(parts)
	narrow(windows)
	for _, w := range windows {
		_, to, _ := m.mayHold(w.Acquisition)
		all.add(span{part: w.part, from: w.takeFrom, to: to})
	}
	for _, p := range parts {
		if from, to, may := m.mayHold(p.Acquisition); may && !p.Granted() {
			all.add(span{part: p, from: from, to: to})
		}
		if from, to, _ := m.mayBeGiven(p); to > 0 {
			all.add(span{part: p, from: from, to: to})
		}
		until := p.Answered
		if until == 0 {
			until = h.End
		}
		calm := h.calm(p.Acquisition, m.bounds, until)
		if p.Kind == Read || p.Kind == Write || p.Kind == Fair && !calm {
			until = until.Add(max(lingering, m.bounds.Lease)) // those who wait for each other have turns, also when they have left
		}
		all.add(span{part: p, from: p.Asked, to: until.Add(m.bounds.late(calm)), inLine: true})
	}
	all.sort()
	return &all
}
