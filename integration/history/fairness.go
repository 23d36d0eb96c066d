package history

import (
	"cmp"
	"fmt"
	"slices"
)

// hungNeighbour is how long after a fault a waiter may still lose its place: see lingering.
const hungNeighbour = lingering

// queuer is one who was seen in the queue of a fair lock, and got the lock later.
type queuer struct {
	*Acquisition
	seen Event // the first sample with it
}

// fairness: those who wait for a fair lock get it in the order of the queue. Who was in the queue at some instant comes
// before those who were behind it then, and before those who asked later.
//
// Only those who were alive all the time are judged: a waiter of a process that hung may be passed over. Which of two came
// first is known, because their holds exclude each other: b did if it was granted before a's hold can have ended.
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
		line := inLine(firsts, samples[name])
		judged := map[[2]*Acquisition]bool{}
		judge := func(a queuer, b *Acquisition, why string) {
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
				verdict.breach(Breach{Invariant: Fairness, At: b.Answered, Between: []*Acquisition{a.Acquisition, b},
					Text: fmt.Sprintf("%q: %v got it before %v, %s", name, b, a.Acquisition, why)})
			}
		}
		for _, sample := range samples[name] {
			var ahead []queuer
			for _, o := range sample.Owners {
				b, ok := line.find(o, sample)
				if !ok {
					continue
				}
				for _, a := range ahead {
					judge(a, b.Acquisition, "which was before it in the queue")
				}
				ahead = append(ahead, b)
			}
		}
		for _, waiters := range line {
			for _, a := range waiters {
				after, _ := slices.BinarySearchFunc(firsts, a.seen.Until+1, func(b part, at Instant) int { return cmp.Compare(b.Asked, at) })
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

// firstLevels are those who had to wait for their turn, because their owner had no hold: in the order in which they asked.
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

// waiting are those who were seen in the queue, by the owner's name in Redis.
type waiting map[string][]queuer

func inLine(firsts []part, samples []Event) waiting {
	with := map[string][]Event{} // the samples in which an owner is
	for _, sample := range samples {
		for _, o := range sample.Owners {
			with[o] = append(with[o], sample)
		}
	}
	line := waiting{}
	for _, p := range firsts {
		if len(p.Locks) > 1 { // which leaves the queue of one part to wait for another
			continue
		}
		for _, sample := range with[p.Owner] { // they are few: an owner waits once or a few times
			if sample.Until >= p.Asked && sample.At <= p.Answered {
				line[p.Owner] = append(line[p.Owner], queuer{p.Acquisition, sample})
				break
			}
		}
	}
	return line
}

// find gives the one who was meant by an owner in a sample, if that is clear.
func (w waiting) find(owner string, sample Event) (found queuer, ok bool) {
	for _, q := range w[owner] {
		if sample.Until >= q.Asked && sample.At <= q.Answered {
			if ok {
				return queuer{}, false
			}
			found, ok = q, true
		}
	}
	return found, ok
}

// alive tells whether nothing hindered a from taking its turn, and nobody forgot that it was in the queue.
func (h *History) alive(m *memory, a queuer) bool {
	since := a.seen.At.Add(-m.bounds.Command - hungNeighbour)
	return !h.faulty(a.Process, since, a.Answered) && !m.forgetting(since, a.Answered)
}
