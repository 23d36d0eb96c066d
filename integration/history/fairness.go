package history

import (
	"cmp"
	"fmt"
	"slices"
)

// afterFault is how long after a fault a waiter may still be passed over: see lingering.
const afterFault = lingering

// waiter is a call that was seen in the queue of a fair lock, and was granted the lock later.
type waiter struct {
	*Acquisition
	seen Event // the first sample that has it
}

// fairness: the waiters of a fair lock get it in the order of the queue. One that was in the queue
// at some instant comes before those behind it, and before those that asked later.
//
// Only waiters that were alive all the time are judged: one whose process hung may be passed over.
// The order of two follows from the exclusion of their holds: b was first if it was granted before
// a's hold can have ended.
func (h *History) fairness(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	samples := map[string][]Event{}
	for _, e := range h.Events {
		if e.What == Queue {
			samples[e.Name] = append(samples[e.Name], e)
		}
	}
	for name, parts := range h.names() {
		if len(samples[name]) == 0 {
			continue
		}
		firsts := firstLevels(parts)
		queued := waitersIn(firsts, samples[name])
		judged := map[[2]*Acquisition]bool{}
		judge := func(a waiter, b *Acquisition, why string) {
			pair := [2]*Acquisition{a.Acquisition, b}
			if judged[pair] || a.owner() == b.owner() {
				return
			}
			judged[pair] = true
			if !h.alive(m, a) {
				return
			}
			verdict.Judged[Fairness]++
			if earliest, _ := m.ends(a.Acquisition); b.Answered < earliest {
				verdict.breach(Breach{Invariant: Fairness, At: b.Answered,
					Between: []*Acquisition{a.Acquisition, b},
					Text: fmt.Sprintf("%q: %v got it before %v, %s", name, b, a.Acquisition,
						why)})
			}
		}
		for _, sample := range samples[name] {
			var ahead []waiter
			for _, o := range sample.Owners {
				b, ok := queued.find(o, sample)
				if !ok {
					continue
				}
				for _, a := range ahead {
					judge(a, b.Acquisition, "which was before it in the queue")
				}
				ahead = append(ahead, b)
			}
		}
		for _, calls := range queued {
			for _, a := range calls {
				after, _ := slices.BinarySearchFunc(firsts, a.seen.Until+1,
					func(b part, at Instant) int { return cmp.Compare(b.Asked, at) })
				for _, b := range firsts[after:] {
					if b.Asked > a.Answered { // a was first
						break
					}
					judge(a, b.Acquisition, "which was in the queue before it asked")
				}
			}
		}
	}
}

// firstLevels returns the acquisitions that had to wait because their owner had no hold, in the
// order in which they were asked for.
func firstLevels(parts []part) []part {
	asked := map[owner]bool{}
	var firsts []part
	for _, p := range granted(parts) {
		if !asked[p.owner()] && p.Kind == Fair {
			firsts = append(firsts, p)
		}
		asked[p.owner()] = true
	}
	return firsts
}

// waiters are the calls that were seen in the queue, by the owner's name in Redis.
type waiters map[string][]waiter

func waitersIn(firsts []part, samples []Event) waiters {
	with := map[string][]Event{} // by owner, the samples that have it
	for _, sample := range samples {
		for _, o := range sample.Owners {
			with[o] = append(with[o], sample)
		}
	}
	queued := waiters{}
	for _, p := range firsts {
		if len(p.Locks) > 1 { // it leaves the queue of one lock to wait for another
			continue
		}
		for _, sample := range with[p.Owner] { // they are few: an owner seldom waits twice
			if sample.Until >= p.Asked && sample.At <= p.Answered {
				queued[p.Owner] = append(queued[p.Owner], waiter{p.Acquisition, sample})
				break
			}
		}
	}
	return queued
}

// find returns the waiter that an owner in a sample stands for, if that is clear.
func (w waiters) find(owner string, sample Event) (found waiter, ok bool) {
	for _, q := range w[owner] {
		if sample.Until >= q.Asked && sample.At <= q.Answered {
			if ok {
				return waiter{}, false
			}
			found, ok = q, true
		}
	}
	return found, ok
}

// alive reports whether a was free to acquire the lock, and its registration was not forgotten.
func (h *History) alive(m *memory, a waiter) bool {
	since := a.seen.At.Add(-m.bounds.Command - afterFault)
	return !h.faulty(a.Process, since, a.Answered) && !m.forgetting(since, a.Answered)
}
