package history

import (
	"cmp"
	"iter"
	"slices"
)

// span is a time during which an acquisition matters to others.
type span struct {
	part
	from, to   Instant
	queued     bool
	registered bool // a fair lock waits for it, or readers for a writer
	hold       bool // it ended with its release, and was known from its start
}

// spans are in the order of their starts once they are sorted.
type spans struct {
	list []span
	to   []Instant // the latest end so far
}

func (s *spans) add(one span) { s.list = append(s.list, one) }

func (s *spans) sort() {
	slices.SortStableFunc(s.list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var latest Instant
	for _, one := range s.list {
		latest = max(latest, one.to)
		s.to = append(s.to, latest)
	}
}

// during yields the spans that overlap with from to to, in the reverse order of their starts.
func (s *spans) during(from, to Instant) iter.Seq[span] {
	return func(yield func(span) bool) {
		end, _ := slices.BinarySearchFunc(s.list, to+1, func(one span, at Instant) int {
			return cmp.Compare(one.from, at)
		})
		for i := end - 1; i >= 0 && s.to[i] >= from; i-- {
			if s.list[i].to >= from && !yield(s.list[i]) {
				return
			}
		}
	}
}
