package history

import "fmt"

// kept: a hold is not lost before the deadline that it has shown, unless the servers forgot it.
//
// Two kinds of holds may be. A read hold of a writer is given up when an earlier release of its, which got no answer, may
// still take it (package rlock says so). And the deadline of a RedLock is that of a quorum of its nodes, which moves back
// when nodes forget.
func (h *History) kept(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	for _, a := range h.Acquisitions {
		if !a.Granted() || a.Promised == 0 || mayBeGivenUp(a) {
			continue
		}
		verdict.Judged[Kept]++
		at := a.Lost
		if at == 0 && a.Release == NotHeld {
			at = a.Gone
		}
		if at == 0 || at >= a.Promised {
			continue
		}
		b := Breach{Invariant: Kept, At: at, Between: []*Acquisition{a},
			Text: fmt.Sprintf("%v was lost %v before its deadline: %s", a, a.Promised.Sub(at), a.Error)}
		if because, forgotten := m.forgottenBefore(a, at); forgotten {
			verdict.expect(b, because)
		} else {
			verdict.breach(b)
		}
	}
}

// mayBeGivenUp tells whether a is a hold of those kinds.
func mayBeGivenUp(a *Acquisition) bool {
	for _, lock := range a.Locks {
		if lock.Kind == Quorum || lock.Kind == Read && a.Nested() {
			return true
		}
	}
	return false
}

// forgottenBefore gives a period in which the servers may have forgotten a's hold before the instant.
func (m *memory) forgottenBefore(a *Acquisition, at Instant) (Period, bool) {
	for _, p := range m.periods {
		if a.Asked < p.To && p.From < at {
			return p, true
		}
	}
	return Period{}, false
}
