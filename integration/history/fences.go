package history

import (
	"cmp"
	"fmt"
	"slices"
)

// fences: the later of two acquisitions of a fenced lock has the larger token. No two owners have
// the same token. The levels of one owner share one as long as it holds the lock.
func (h *History) fences(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	for name, parts := range h.names() {
		holds := slices.DeleteFunc(granted(parts), func(p part) bool { return p.Kind != Fenced })
		for _, check := range []func(string, []part, *memory, *Verdict){fencesGrow, fencesDiffer,
			fencesNest} {
			check(name, holds, m, verdict)
		}
	}
}

// fencesGrow: if a was granted before b was asked for, a has the smaller token.
func fencesGrow(name string, holds []part, m *memory, verdict *Verdict) {
	before := slices.Clone(holds)
	slices.SortStableFunc(before, func(a, b part) int {
		return cmp.Compare(a.Answered, b.Answered)
	})
	slices.SortStableFunc(holds, func(a, b part) int { return cmp.Compare(a.Asked, b.Asked) })
	// The largest tokens so far. There is one for each number of forgetting periods that were over
	// when the acquisition was asked for.
	largest := make([]rank, len(m.tokens)+1)
	for _, b := range holds {
		for len(before) > 0 && before[0].Answered < b.Asked {
			a := before[0].Acquisition
			largest[m.over(a.Asked)].add(a)
			before = before[1:]
		}
		verdict.Judged[Fences]++
		// Acquisitions asked for before since may have been forgotten when b was granted.
		since := m.since(b.Answered)
		if a := most(largest[since:], b.Acquisition); a != nil && a.Token >= b.Token {
			verdict.breach(fenceBreach(name, a, b.Acquisition))
		} else if a := most(largest[:since], b.Acquisition); a != nil && a.Token >= b.Token {
			period, _ := between(m.tokens, a, b.Acquisition)
			verdict.expect(fenceBreach(name, a, b.Acquisition), period)
		}
	}
}

// fencesDiffer: no two owners have the same token.
func fencesDiffer(name string, holds []part, m *memory, verdict *Verdict) {
	slices.SortStableFunc(holds, func(a, b part) int { return cmp.Compare(a.Answered, b.Answered) })
	first := map[int64]*Acquisition{}
	for _, b := range holds {
		a := first[b.Token]
		if a == nil || a.owner() == b.owner() {
			first[b.Token] = b.Acquisition
			continue
		}
		if a.Answered < b.Asked { // reported by fencesGrow
			first[b.Token] = b.Acquisition
			continue
		}
		if period, ok := between(m.tokens, a, b.Acquisition); ok {
			verdict.expect(fenceBreach(name, a, b.Acquisition), period)
		} else {
			verdict.breach(fenceBreach(name, a, b.Acquisition))
		}
		first[b.Token] = b.Acquisition
	}
}

// fencesNest: a level that was acquired while another of its owner was valid has the same token.
func fencesNest(name string, holds []part, m *memory, verdict *Verdict) {
	slices.SortStableFunc(holds, func(a, b part) int { return cmp.Compare(a.Asked, b.Asked) })
	levels := map[owner][]*Acquisition{}
	for _, b := range holds {
		for _, a := range levels[b.owner()] {
			if a.Answered > b.Asked || a.Trusted < b.Answered || a.Token == b.Token {
				continue
			}
			if period, ok := between(m.periods, a, b.Acquisition); ok {
				verdict.expect(fenceBreach(name, a, b.Acquisition), period)
			} else {
				verdict.breach(fenceBreach(name, a, b.Acquisition))
			}
		}
		levels[b.owner()] = append(levels[b.owner()], b.Acquisition)
	}
}

func fenceBreach(name string, a, b *Acquisition) Breach {
	return Breach{Invariant: Fences, At: b.Answered, Between: []*Acquisition{a, b},
		Text: fmt.Sprintf("%q: %v has token %d, and the later %v has %d", name, a, a.Token, b,
			b.Token)}
}

// rank is the acquisition with the largest token, and the one with the largest of any other owner.
type rank struct{ best, other *Acquisition }

func (r *rank) add(a *Acquisition) {
	switch {
	case r.best == nil || a.Token >= r.best.Token:
		if r.best != nil && r.best.owner() != a.owner() {
			r.other = r.best
		}
		r.best = a
	case a.owner() != r.best.owner() && (r.other == nil || a.Token > r.other.Token):
		r.other = a
	}
}

// most returns the acquisition with the largest token that is not b's owner's.
func most(ranks []rank, b *Acquisition) (most *Acquisition) {
	for _, r := range ranks {
		a := r.best
		if a != nil && a.owner() == b.owner() {
			a = r.other
		}
		if a != nil && (most == nil || a.Token > most.Token) {
			most = a
		}
	}
	return most
}
