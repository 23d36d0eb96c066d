package history

import (
	"cmp"
	"fmt"
	"slices"
)

// exclusion: two owners never trust holds of one lock at the same time, unless both read.
//
// Each acquisition is judged on its own, from the instant at which it was known to be granted to
// the last at which it was trusted. Levels of one owner may end in any order: a nested one may
// outlive the outermost.
func (h *History) exclusion(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	for name, parts := range h.names() {
		holds := granted(parts)
		slices.SortStableFunc(holds, func(a, b part) int {
			return cmp.Compare(a.Answered, b.Answered)
		})
		// Those that may still overlap with the next one. There are as many as owners hold the lock
		// at the same time: one, on a lock that works.
		var trusted []part
		contended := false
		for _, b := range holds {
			trusted = slices.DeleteFunc(trusted, func(a part) bool {
				return a.Trusted <= b.Answered
			})
			for _, a := range trusted {
				// The latter holds if both are at the same instant, and for no time.
				if !a.conflicts(b) || a.Answered >= b.Trusted {
					continue
				}
				overlap := min(a.Trusted, b.Trusted)
				breach := Breach{Invariant: Exclusion, At: b.Answered,
					Between: []*Acquisition{a.Acquisition, b.Acquisition},
					Text: fmt.Sprintf("%q: %v and %v are both valid for at least %v",
						name, a.Acquisition, b.Acquisition, overlap.Sub(b.Answered))}
				period, ok := m.accountsFor(a.Acquisition, b.Acquisition, overlap)
				if !ok && h.heardLate(b.Acquisition) { // b may have been granted first
					period, ok = m.accountsFor(b.Acquisition, a.Acquisition, overlap)
				}
				if ok {
					verdict.expect(breach, period)
				} else {
					verdict.breach(breach)
				}
			}
			trusted = append(trusted, b)
			contended = contended || holds[0].conflicts(b)
			if contended {
				verdict.Judged[Exclusion]++
			}
		}
	}
}

// heardLate reports whether a fault may have delayed the reply to a. Servers that forget do not.
func (h *History) heardLate(a *Acquisition) bool {
	return slices.ContainsFunc(h.Faults, func(p Period) bool {
		return !p.Forgets && p.Concerns(a.Process) && p.From < a.Answered && p.To > a.Asked
	})
}
