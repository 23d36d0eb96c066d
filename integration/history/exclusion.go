package history

import (
	"cmp"
	"fmt"
	"slices"
)

// exclusion: two owners never trust holds of one lock at the same time, unless both read.
//
// Each acquisition is looked at on its own, from when it was known to be granted to when it was trusted for the last time.
// Levels of one owner may end in any order, so one that is nested may outlive the outermost.
func (h *History) exclusion(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	for name, parts := range h.names() {
		holds := granted(parts)
		slices.SortStableFunc(holds, func(a, b part) int { return cmp.Compare(a.Answered, b.Answered) })
		// Those that may still overlap with the next one. There are as many as owners hold at the same time, so on a lock
		// that works it is one.
		var trusted []part
		rivals := false
		for _, b := range holds {
			trusted = slices.DeleteFunc(trusted, func(a part) bool { return a.Trusted <= b.Answered })
			for _, a := range trusted {
				if !a.conflicts(b) || a.Answered >= b.Trusted { // the latter: at the same instant, and for no time
					continue
				}
				overlap := min(a.Trusted, b.Trusted)
				breach := Breach{Invariant: Exclusion, At: b.Answered, Between: []*Acquisition{a.Acquisition, b.Acquisition},
					Text: fmt.Sprintf("%q: %v and %v are both valid for at least %v", name, a.Acquisition, b.Acquisition,
						overlap.Sub(b.Answered))}
				period, ok := m.accountsFor(a.Acquisition, b.Acquisition, overlap)
				if !ok && h.heardLate(b.Acquisition) { // so it may have been granted first
					period, ok = m.accountsFor(b.Acquisition, a.Acquisition, overlap)
				}
				if ok {
					verdict.expect(breach, period)
				} else {
					verdict.breach(breach)
				}
			}
			trusted = append(trusted, b)
			if rivals = rivals || holds[0].conflicts(b); rivals {
				verdict.Judged[Exclusion]++
			}
		}
	}
}

// heardLate tells whether something may have kept the answer from a for a while. Servers that forget do not.
func (h *History) heardLate(a *Acquisition) bool {
	return slices.ContainsFunc(h.Faults, func(p Period) bool {
		return !p.Forgets && p.Concerns(a.Process) && p.From < a.Answered && p.To > a.Asked
	})
}
