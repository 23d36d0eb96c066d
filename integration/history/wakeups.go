package history

import (
	"cmp"
	"fmt"
	"slices"
)

// wakeUps: a lock that nobody can have any more, and that somebody waits for, is taken soon.
//
// The time of each waiter is looked through for a gap in which no lock that it wants can be held by anybody, and no fault
// could hinder it. Whoever is granted the lock ends the gap when it is told so, and has been told soon, unless a fault
// concerned it: then it may have had the lock since it asked. A waiter that is in line behind another one is as good a
// witness as the first.
func (h *History) wakeUps(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	busy := map[string]*spans{}
	for name, parts := range h.names() {
		busy[name] = h.busy(m, parts)
	}
	said := map[string]Instant{} // until when a gap was reported: the same one has many witnesses
	for _, w := range h.Acquisitions {
		if w.Wait == 0 {
			continue
		}
		free, until := w.Asked, h.waitEnds(w) // nobody can have had it since free
		waited := false
		for _, one := range h.hindrances(m, w, busy, until) {
			waited = true
			h.gap(w, free, one.from, said, bounds, verdict)
			free = max(free, one.to)
		}
		h.gap(w, free, until, said, bounds, verdict)
		if waited {
			verdict.Judged[WakeUps]++
		}
	}
}

// gap reports that w has waited in vain for too long.
func (h *History) gap(w *Acquisition, from, to Instant, said map[string]Instant, bounds Bounds, verdict *Verdict) {
	if to.Sub(from) <= bounds.WakeUp || from < said[w.Locks[0].Name] {
		return
	}
	said[w.Locks[0].Name] = to
	verdict.breach(Breach{Invariant: WakeUps, At: from, Between: []*Acquisition{w},
		Text: fmt.Sprintf("%v waited for %v, although nobody can have had it", w, to.Sub(from))})
}

// waitEnds is when w was answered, or would never be.
func (h *History) waitEnds(w *Acquisition) Instant {
	switch killed, ok := h.Killed[w.Process]; {
	case w.Answered != 0:
		return w.Answered
	case ok:
		return killed
	default:
		return h.End
	}
}

// hindrances gives the times at which w could not or need not have been granted its locks until an instant, in their order.
func (h *History) hindrances(m *memory, w *Acquisition, busy map[string]*spans, until Instant) []span {
	var all []span
	for _, lock := range w.Locks {
		for one := range busy[lock.Name].during(w.Asked, until) {
			if one.Acquisition != w {
				all = append(all, one)
			}
		}
	}
	for _, p := range h.Faults {
		// Its connections and subscriptions have to come back, and its commands to be repeated.
		if to := p.To.Add(m.bounds.Command + m.bounds.Lease); p.Concerns(w.Process) && p.From <= until && to >= w.Asked {
			all = append(all, span{from: p.From, to: to})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return all
}

// busy gives the times at which somebody may have the lock, or keep others from it.
func (h *History) busy(m *memory, parts []part) *spans {
	var all spans
	for _, p := range parts {
		until := h.waitEnds(p.Acquisition)
		troubled := h.faulty(p.Process, p.Asked, until)
		if from, to, may := h.mayHold(p.Acquisition, m.bounds); may {
			if p.Granted() && len(p.Locks) == 1 && p.Kind != Quorum && !troubled {
				from = p.Answered
			}
			all.add(span{part: p, from: from, to: to})
		}
		if len(p.Locks) > 1 { // it keeps those that it has while it waits for the others
			all.add(span{part: p, from: p.Asked, to: until.Add(m.bounds.Slack)})
		}
		if keeps := p.Kind == Fair || p.Kind == Write; keeps && troubled { // its place in the queue, until it is given up
			to := until
			for _, period := range h.Faults {
				if period.Concerns(p.Process) && period.From <= until && period.To >= p.Asked {
					to = max(to, min(period.To, until))
				}
			}
			all.add(span{part: p, from: p.Asked, to: to.Add(max(lingering, m.bounds.Lease) + m.bounds.Slack)})
		}
	}
	all.sort()
	return &all
}
