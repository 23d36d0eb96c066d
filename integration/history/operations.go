package history

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"
)

// operations on one lock, in the order in which they begin.
func (m *memory) operations(windows []window) []porcupine.Operation {
	var operations []porcupine.Operation
	add := func(s step, from, to Instant) {
		operations = append(operations, porcupine.Operation{Input: s, Call: int64(from), Return: int64(to)})
	}
	fenced := false
	for _, w := range windows {
		fenced = fenced || w.Kind == Fenced
		add(step{verb: take, part: w.part, anew: w.Kind == Fenced && m.forgets(m.tokens, w.takeFrom, w.takeTo)},
			w.takeFrom, w.takeTo)
		add(step{verb: end, part: w.part}, w.endFrom, w.endTo)
	}
	if fenced {
		for _, p := range m.tokens {
			add(step{verb: forget}, p.From, p.To.Add(m.bounds.Slack))
		}
	}
	slices.SortStableFunc(operations, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return operations
}

// forgetting tells whether the servers may have forgotten holds between the two instants.
func (m *memory) forgetting(from, to Instant) bool { return m.forgets(m.periods, from, to) }

// forgets tells whether one of the periods, or the slack after it, has an instant in common with from to to.
func (m *memory) forgets(periods []Period, from, to Instant) bool {
	return slices.ContainsFunc(periods, func(p Period) bool { return p.From <= to && from <= p.To.Add(m.bounds.Slack) })
}
