package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// wakeUps: a lock that nobody can have any more, and that somebody waits for, is taken soon.
//
// A hold that is not released ends with its lease, so its waiters are judged from then on.
// Of a fair lock, a waiter is not held up by a place behind its own: when it has been seen at the
// head of the queue, places are no excuse.
//
// The time of each waiter is looked through for a gap in which no lock that it wants can be held by anybody, and no fault
// could hinder it. Whoever is granted the lock ends the gap when it is told so, and has been told soon, unless a fault
// concerned it: then it may have had the lock since it asked. A waiter that is in line behind another one is as good a
// witness as the first.
//
// A waiter counts as judged if a gap would have been seen, had the lock not been passed on: see witnesses.
func (h *History) wakeUps(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	m.heads = h.heads()
	busy := map[string]*spans{}
	for name, parts := range h.names() {
		busy[name] = h.busy(m, parts)
	}
	said := map[string]Instant{} // until when a gap was reported: the same one has many witnesses
	for _, w := range h.Acquisitions {
		until := h.waitEnds(w)
		if w.Wait == 0 || w.Wait > 0 && max(w.Wait, until.Sub(w.Asked)) <= bounds.WakeUp {
			continue // it is over before a gap could be seen
		}
		free := w.Asked // nobody can have had it since
		for _, one := range h.hindrances(m, w, busy, until) {
			h.gap(w, free, one.from, said, bounds, verdict)
			free = max(free, one.to)
		}
		h.gap(w, free, until, said, bounds, verdict)
		if h.witnesses(m, w, busy, until) {
			verdict.Judged[WakeUps]++
		}
	}
}

// witnesses tells whether w would have seen a gap: it waited when a hold ended, would have waited for longer than a wake-up may
// take after that, and there was nothing that excuses a delay. Holds that others were granted meanwhile are none: they show
// that the lock was passed on.
func (h *History) witnesses(m *memory, w *Acquisition, busy map[string]*spans, until Instant) bool {
	patience := until.Add(m.bounds.WakeUp + 1)
	if w.Wait > 0 {
		patience = w.Asked.Add(w.Wait)
	}
	var ends, excused []span
	for _, one := range h.hindrances(m, w, busy, patience) {
		switch {
		case !one.hold:
			excused = append(excused, one)
		case one.to > w.Asked && one.to <= until:
			ends = append(ends, one)
		}
	}
	return slices.ContainsFunc(ends, func(end span) bool {
		seen := end.to.Add(m.bounds.WakeUp + 1)
		return seen <= patience && !slices.ContainsFunc(excused, func(one span) bool { return one.from < seen && one.to > end.to })
	})
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
		first := m.first(w, lock.Name, until)
		for one := range busy[lock.Name].during(w.Asked, until) {
			if one.place {
				one.to = min(one.to, first) // then w is before it
			}
			readersOnly := one.place && one.Kind == Write // wait for the place of a writer
			if one.Acquisition != w && one.from <= one.to && (!readersOnly || lock.Kind == Read) {
				all = append(all, one)
			}
		}
	}
	for _, p := range h.Faults {
		// Its connections and subscriptions are back then, and a command that was under way has to be repeated.
		if to := p.To.Add(m.bounds.Command); p.Concerns(w.Process) && p.From <= until && to >= w.Asked {
			all = append(all, span{from: p.From, to: to})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return all
}

// heads returns the samples of the queues of fair locks, by lock and the owner at the head.
func (h *History) heads() map[[2]string][]Event {
	heads := map[[2]string][]Event{}
	for _, e := range h.Events {
		if e.What == Queue {
			one := [2]string{e.Name, e.Owners[0]}
			heads[one] = append(heads[one], e)
		}
	}
	return heads
}

// first returns when w was first known to be at the head of the queue of a fair lock, if that was
// before until; else until.
func (m *memory) first(w *Acquisition, name string, until Instant) Instant {
	for _, sample := range m.heads[[2]string{name, w.Owner}] {
		if sample.At >= w.Asked {
			return min(sample.Until, until)
		}
	}
	return until
}

// busy gives the times at which somebody may have the lock, or keep others from it.
func (h *History) busy(m *memory, parts []part) *spans {
	var all spans
	for _, p := range parts {
		until := h.waitEnds(p.Acquisition)
		since, troubled := h.troubledSince(p.Process, p.Asked, until)
		if from, to, may := m.mayHold(p.Acquisition); may {
			prompt := false
			switch {
			case len(p.Locks) > 1 || p.Kind == Quorum || !p.Granted() && !troubled:
			case troubled: // it would have heard before of what was granted before
				from = max(from, min(since.Add(-m.bounds.Command), until))
			default:
				from, prompt = p.Answered, true
			}
			all.add(span{part: p, from: from, to: to, hold: prompt && p.Release == Released})
		}
		if len(p.Locks) > 1 { // it keeps those that it has while it waits for the others
			all.add(span{part: p, from: p.Asked, to: until.Add(m.bounds.Slack)})
		}
		if from, to, hindered := m.mayBeGiven(p); hindered {
			all.add(span{part: p, from: from, to: to})
		}
		if place := m.place(p.Kind); place > 0 && troubled { // in the queue, until it is given up
			all.add(span{part: p, from: max(p.Asked, since.Add(-m.bounds.Command)), to: until.Add(place + m.bounds.Slack), place: true})
		}
	}
	all.sort()
	return &all
}

// mayBeGiven gives the time at which p, which was not granted its lock, may have had it all the same, because somebody has handed it
// over: when its wait was over just as the message came, until it gave the lock back. If it was hindered it could not say that
// it has left, so it had that for a lease; and those who had looked just before did not look again for another one.
func (m *memory) mayBeGiven(p part) (from, to Instant, hindered bool) {
	if !m.bounds.HandsOver || p.Wait == 0 || p.Granted() || p.Kind != Plain && p.Kind != Fenced {
		return 0, 0, false
	}
	if _, killed := m.h.Killed[p.Process]; killed && p.Answered == 0 {
		return 0, 0, false // mayHold says until when
	}
	until := m.h.waitEnds(p.Acquisition)
	if last, hindered := m.h.troubledUntil(p.Process, p.Asked, until.Add(m.bounds.Command)); hindered {
		return p.Asked, last.Add(m.bounds.Command + 2*m.bounds.Lease + m.bounds.Slack), true
	}
	return until.Add(-m.bounds.brief()), until.Add(m.bounds.brief()), false
}

// place is for how long a lock waits for one whose turn it is: a fair lock for one whose process hangs, and readers for a
// writer, for the lease of the watchdog.
func (m *memory) place(kind Kind) time.Duration {
	switch kind {
	case Fair:
		return lingering
	case Write:
		return m.bounds.Lease
	default:
		return 0
	}
}
