package history

import (
	"cmp"
	"fmt"
	"slices"
)

// Judge checks all invariants. It may be called again with other bounds; it is not for concurrent
// use.
func (h *History) Judge(bounds Bounds) Verdict {
	h.bounds = bounds
	verdict := Verdict{Judged: map[string]int{}}
	for _, check := range []func(Bounds, *Verdict){
		h.exclusion, h.linearizable, h.fences, h.fairness, h.waits, h.wakeUps, h.progress, h.kept,
		h.answers, h.remains,
	} {
		check(bounds, &verdict)
	}
	for _, breaches := range [][]Breach{verdict.Breaches, verdict.Expected} {
		slices.SortStableFunc(breaches, func(a, b Breach) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Invariant, b.Invariant),
				cmp.Compare(a.Text, b.Text))
		})
	}
	h.breaches = verdict.Breaches
	return verdict
}

// breach records that an invariant did not hold.
func (v *Verdict) breach(b Breach) { v.Breaches = append(v.Breaches, b) }

// expect records that an invariant did not hold because the servers forgot.
func (v *Verdict) expect(b Breach, because Period) {
	b.Text += fmt.Sprintf(", after %s", because.Fault)
	v.Expected = append(v.Expected, b)
}
