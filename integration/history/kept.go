package history

import (
	"fmt"
	"slices"
)

// kept: a hold is not lost before the deadline that it returned. A renewed one is not lost at all,
// unless a fault that does not spare held locks concerned its process.
//
// Two kinds of holds are exempt. A read hold of a writer is given up when an earlier release, which
// got no reply, may still remove it (package rlock says so). The deadline of a RedLock is that of a
// quorum of its nodes, which moves back when nodes forget.
func (h *History) kept(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	for _, a := range h.Acquisitions {
		if !a.Granted() || mayBeGivenUp(a) {
			continue
		}
		at, lost := a.lostAt()
		// Levels with their own lease are not judged by it: they may outlive the renewed one.
		renewed := !a.Fixed && h.spared(Kept, a, bounds, at) &&
			(h.calm(a, bounds, at) || !a.late())
		if a.Promised == 0 && !renewed {
			continue
		}
		verdict.Judged[Kept]++
		b := Breach{Invariant: Kept, At: at, Between: []*Acquisition{a}}
		switch {
		case !lost:
			continue
		case at < a.Promised:
			b.Text = fmt.Sprintf("%v was lost %v before its deadline: %s", a, a.Promised.Sub(at),
				a.Error)
		case renewed:
			b.Text = fmt.Sprintf("%v was lost, although it is renewed and no fault was near%s: %s", a,
				h.inSpiteOf(Kept, a, at),
				a.Error)
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

// late reports whether a call took so long that little was left of the lease when it returned. A
// fault that spares what is held may do that to what is being acquired.
func (a *Acquisition) late() bool { return a.Answered.Sub(a.Asked) > a.Lease/2 }

// lostAt returns when a's hold was known to have ended by itself, if it did; else when it was last
// known to exist.
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

// mayBeGivenUp reports whether a is a hold of those kinds.
func mayBeGivenUp(a *Acquisition) bool {
	return a.quorum() || a.Nested() && slices.ContainsFunc(a.Locks, func(lock Lock) bool {
		return lock.Kind == Read
	})
}

// forgottenBefore returns a period in which the servers may have forgotten a's hold before the
// instant.
func (m *memory) forgottenBefore(a *Acquisition, at Instant) (Period, bool) {
	for _, p := range m.periods {
		if a.Asked < p.To && p.From < at {
			return p, true
		}
	}
	return Period{}, false
}
