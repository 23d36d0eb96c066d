package history

import (
	"fmt"
	"slices"
)

// kept: a hold is not lost before the deadline that it has shown, unless the servers forgot it. One that the watchdog renews is
// not lost at all, unless a fault concerned its process.
//
// Two kinds of holds may be. A read hold of a writer is given up when an earlier release of its, which got no answer, may
// still take it (package rlock says so). And the deadline of a RedLock is that of a quorum of its nodes, which moves back
// when nodes forget.
func (h *History) kept(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	for _, a := range h.Acquisitions {
		if !a.Granted() || mayBeGivenUp(a) {
			continue
		}
		at, lost := a.lostAt()
		// Levels with a lease of their own are not judged by it: they may outlive the one that is renewed.
		renewed := !a.Fixed && h.calm(a, bounds, at)
		if a.Promised == 0 && !renewed {
			continue
		}
		verdict.Judged[Kept]++
		b := Breach{Invariant: Kept, At: at, Between: []*Acquisition{a}}
		switch {
		case !lost:
			continue
		case at < a.Promised:
			b.Text = fmt.Sprintf("%v was lost %v before its deadline: %s", a, a.Promised.Sub(at), a.Error)
		case renewed:
			b.Text = fmt.Sprintf("%v was lost, although it is renewed and no fault was near: %s", a, a.Error)
		default:
			continue
		}
		if because, forgotten := m.forgottenBefore(a, at); forgotten {
			verdict.expect(b, because)
		} else {
			verdict.breach(b)
		}
	}
}

// lostAt is when a's hold was known to have ended by itself, if it did; else when it was last known to be there.
func (a *Acquisition) lostAt() (at Instant, lost bool) {
	switch {
	case a.Lost != 0:
		return a.Lost, true
	case a.Release == NotHeld:
		return a.Gone, true
	default:
		return max(a.Trusted, a.Gone), false
	}
}

// mayBeGivenUp tells whether a is a hold of those kinds.
func mayBeGivenUp(a *Acquisition) bool {
	return a.quorum() || a.Nested() && slices.ContainsFunc(a.Locks, func(lock Lock) bool { return lock.Kind == Read })
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
