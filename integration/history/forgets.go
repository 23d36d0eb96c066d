package history

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// memory records when the servers may have forgotten holds and tokens.
type memory struct {
	h       *History
	bounds  Bounds
	periods []Period              // periods that forget holds, in the order of their ends
	tokens  []Period              // periods among them that forget tokens, too
	heads   map[[2]string][]Event // for wakeUps
}

func (h *History) memory(bounds Bounds) *memory {
	m := &memory{h: h, bounds: bounds}
	for _, p := range h.Faults {
		if !p.Forgets {
			continue
		}
		m.periods = append(m.periods, p)
		if !p.KeepsTokens {
			m.tokens = append(m.tokens, p)
		}
	}
	for _, periods := range [][]Period{m.periods, m.tokens} {
		slices.SortFunc(periods, func(a, b Period) int { return cmp.Compare(a.To, b.To) })
	}
	return m
}

// between returns a period in which the servers may have forgotten a's result before b's.
func between(periods []Period, a, b *Acquisition) (Period, bool) {
	for _, p := range periods {
		if a.Asked < p.To && b.Answered > p.From {
			return p, true
		}
	}
	return Period{}, false
}

// accountsFor returns a period in which a's hold may have been forgotten when b was granted one, if
// a noticed in time: with the next renewal, or when its lease ended. Overlap is the last instant at
// which both were trusted.
func (m *memory) accountsFor(a, b *Acquisition, overlap Instant) (Period, bool) {
	for _, p := range m.periods {
		if a.Asked < p.To && b.Answered > p.From && m.noticed(a, p, overlap) {
			return p, true
		}
	}
	return Period{}, false
}

// noticed reports whether a stopped trusting its hold soon enough if p made the servers forget it.
func (m *memory) noticed(a *Acquisition, p Period, overlap Instant) bool {
	last := p.To.Add(m.lease(a) + m.bounds.Slack)
	if a.Trusted <= last {
		return true
	}
	// Another level that the owner acquired since sets the hold on the server again, so that a may
	// be right to trust it now: only the overlap must have ended in time.
	for _, level := range m.h.levels[a.owner()] {
		if level != a && level.Answered > p.From && level.Asked < a.Trusted && level.Granted() &&
			sharesName(level, a) {
			return overlap <= last
		}
	}
	return false
}

// ends is History.ends, for a hold that may also have ended because the servers forgot it.
func (m *memory) ends(a *Acquisition) (earliest, latest Instant) {
	earliest, latest = m.h.ends(a, m.bounds)
	for _, p := range m.periods {
		// The overlap, which is for exclusion to judge, counts as over.
		if a.Asked < p.To && latest > p.From && m.noticed(a, p, 0) {
			earliest = min(earliest, max(a.Asked, p.From))
		}
	}
	return earliest, latest
}

// lease returns the longest lease that a's owner asked for: a nested acquisition sets the lease of
// the whole hold.
func (m *memory) lease(a *Acquisition) (longest time.Duration) {
	for _, level := range m.h.levels[a.owner()] {
		longest = max(longest, level.Lease)
	}
	return longest
}

// expired reports whether the lease of the hold in which a is nested was over at an instant.
func (m *memory) expired(a *Acquisition, at Instant) bool {
	return a.Nested() && slices.ContainsFunc(m.h.levels[a.owner()], func(outer *Acquisition) bool {
		return !outer.Nested() && outer.Fixed && outer.Promised <= at
	})
}

// mayHold is History.mayHold, but also considers when a hold without renewal runs out.
func (m *memory) mayHold(a *Acquisition) (from, to Instant, may bool) {
	from, to, may = m.h.mayHold(a, m.bounds)
	if over, ok := m.runsOut(a); ok {
		to = max(from, min(to, over))
	}
	return from, to, may
}

// runsOut returns the instant at which an unreleased hold is over on the servers, if no fault was
// near and its owner's renewed levels were released. Then only the rest of the last renewal is
// left, or of a level that was acquired later.
func (m *memory) runsOut(a *Acquisition) (at Instant, ok bool) {
	if !a.Granted() || a.Release == Released {
		return 0, false
	}
	for _, level := range m.h.levels[a.owner()] {
		last := max(level.Answered, level.Gone) // it may have been extended
		if level.Granted() && !level.Fixed {
			if level.Release != Released {
				return 0, false
			}
			last = level.Gone
		}
		if last == 0 || level.Outcome == Unknown || !m.h.calm(level, m.bounds, last) {
			return 0, false
		}
		at = max(at, last)
	}
	return at.Add(m.lease(a) + m.bounds.brief()), true
}

// sharesName reports whether a and b have a lock in common.
func sharesName(a, b *Acquisition) bool {
	return slices.ContainsFunc(a.Locks, func(one Lock) bool {
		return slices.ContainsFunc(b.Locks, func(other Lock) bool { return one.Name == other.Name })
	})
}

// over returns how many of the periods that forget tokens were over at the instant.
func (m *memory) over(at Instant) int {
	return sort.Search(len(m.tokens), func(i int) bool { return m.tokens[i].To > at })
}

// since returns how many of the periods that forget tokens must have been over when a call began,
// if its token cannot be forgotten at the instant.
func (m *memory) since(at Instant) int {
	for i, p := range slices.Backward(m.tokens) {
		if p.From < at {
			return i + 1
		}
	}
	return 0
}
