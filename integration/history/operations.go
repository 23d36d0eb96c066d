package history

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"
)

// operations returns the operations on one lock, in the order in which they begin.
func (m *memory) operations(windows []window) []porcupine.Operation {
	var operations []porcupine.Operation
	add := func(s step, from, to Instant) {
		operations = append(operations,
			porcupine.Operation{Input: s, Call: int64(from), Return: int64(to)})
	}
	fenced := false
	for _, w := range windows {
		fenced = fenced || w.Kind == Fenced
		anyToken := w.Kind == Fenced && m.forgets(m.tokens, w.startFrom, w.startTo)
		add(step{verb: acquire, part: w.part, anyToken: anyToken}, w.startFrom, w.startTo)
		add(step{verb: end, part: w.part}, w.endFrom, w.endTo)
	}
	if fenced {
		for _, p := range m.tokens {
			add(step{verb: forget}, p.From, p.To.Add(m.bounds.Slack))
		}
	}
	slices.SortStableFunc(operations, func(a, b porcupine.Operation) int {
		return cmp.Compare(a.Call, b.Call)
	})
	return operations
}

// forgetting reports whether the servers may have forgotten holds between the two instants.
func (m *memory) forgetting(from, to Instant) bool { return m.forgets(m.periods, from, to) }

// forgets reports whether one of the periods, or the slack after it, overlaps with from to to.
func (m *memory) forgets(periods []Period, from, to Instant) bool {
	return slices.ContainsFunc(periods, func(p Period) bool {
		return p.From <= to && from <= p.To.Add(m.bounds.Slack)
	})
}
