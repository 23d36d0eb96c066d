package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// wakeUps: a lock that has waiters and that nobody can hold any more is acquired soon.
//
// A hold that is not released ends with its lease, so its waiters are judged from then on. A
// registration behind a waiter of a fair lock does not hinder it: once the waiter was seen at the
// head of the queue, registrations are no excuse.
//
// The time of each waiter is searched for a gap in which nobody can hold a lock that it wants, and
// no fault could hinder it. The reply to the next holder ends the gap. It comes soon, unless a
// fault concerned that process: then it may have had the lock since it asked. A waiter that is
// queued behind another is as good a witness as the first.
//
// A waiter counts as judged if it would have seen a gap, had the lock not been passed on: see
// witnesses.
func (h *History) wakeUps(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	m.heads = h.heads()
	busy := map[string]*spans{}
	for name, parts := range h.names() {
		busy[name] = h.busy(m, parts)
	}
	// by lock, the end of the last gap reported: a gap has many witnesses
	reported := map[string]Instant{}
	for _, w := range h.Acquisitions {
		until := h.waitEnds(w)
		if w.Wait == 0 || w.Wait > 0 && max(w.Wait, until.Sub(w.Asked)) <= bounds.WakeUp {
			continue // too short to see a gap
		}
		free := w.Asked // the lock is free since
		for _, one := range h.hindrances(m, w, busy, until) {
			h.gap(w, free, one.from, reported, bounds, verdict)
			free = max(free, one.to)
		}
		h.gap(w, free, until, reported, bounds, verdict)
		if h.witnesses(m, w, busy, until) {
			verdict.Judged[WakeUps]++
		}
	}
}

// witnesses reports whether w would have seen a gap. It waited when a hold ended, its wait exceeded
// the longest wake-up after that, and nothing excuses a delay. Holds granted meanwhile are no
// excuse: they show that the lock was passed on.
func (h *History) witnesses(m *memory, w *Acquisition, busy map[string]*spans, until Instant) bool {
	deadline := until.Add(m.bounds.WakeUp + 1)
	if w.Wait > 0 {
		deadline = w.Asked.Add(w.Wait)
	}
	var ends, excused []span
	for _, one := range h.hindrances(m, w, busy, deadline) {
		switch {
		case !one.hold:
			excused = append(excused, one)
		case one.to > w.Asked && one.to <= until:
			ends = append(ends, one)
		}
	}
	return slices.ContainsFunc(ends, func(end span) bool {
		seen := end.to.Add(m.bounds.WakeUp + 1)
		return seen <= deadline && !slices.ContainsFunc(excused, func(one span) bool {
			return one.from < seen && one.to > end.to
		})
	})
}

// gap records a breach if w waited in vain for too long.
func (h *History) gap(w *Acquisition, from, to Instant, reported map[string]Instant, bounds Bounds,
	verdict *Verdict) {
	if to.Sub(from) <= bounds.WakeUp || from < reported[w.Locks[0].Name] {
		return
	}
	reported[w.Locks[0].Name] = to
	verdict.breach(Breach{Invariant: WakeUps, At: from, Between: []*Acquisition{w},
		Text: fmt.Sprintf("%v waited for %v, although nobody can have had it", w, to.Sub(from))})
}

// waitEnds returns when w was answered, or could not be any more.
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

// hindrances returns the times before an instant at which w could not, or need not, have been
// granted its locks, sorted by start.
func (h *History) hindrances(m *memory, w *Acquisition, busy map[string]*spans,
	until Instant) []span {
	var all []span
	for _, lock := range w.Locks {
		first := m.first(w, lock.Name, until)
		for one := range busy[lock.Name].during(w.Asked, until) {
			if one.registered {
				one.to = min(one.to, first) // then w comes first
			}
			// readers wait for a registered writer
			readersOnly := one.registered && one.Kind == Write
			if one.Acquisition != w && one.from <= one.to && (!readersOnly || lock.Kind == Read) {
				all = append(all, one)
			}
		}
	}
	for _, p := range h.Faults {
		// By then its connections and subscriptions are back, and an interrupted command was
		// repeated.
		to := p.To.Add(m.bounds.Command)
		if p.Concerns(w.Process) && p.From <= until && to >= w.Asked {
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

// busy returns the times at which a call may have the lock, or keep others from it.
func (h *History) busy(m *memory, parts []part) *spans {
	var all spans
	for _, p := range parts {
		until := h.waitEnds(p.Acquisition)
		since, faulty := h.faultySince(p.Process, p.Asked, until)
		if from, to, may := m.mayHold(p.Acquisition); may {
			prompt := false
			switch {
			case len(p.Locks) > 1 || p.Kind == Quorum || !p.Granted() && !faulty:
			case faulty: // earlier grants would have been known earlier
				from = max(from, min(since.Add(-m.bounds.Command), until))
			default:
				from, prompt = p.Answered, true
			}
			all.add(span{part: p, from: from, to: to, hold: prompt && p.Release == Released})
		}
		if len(p.Locks) > 1 { // it keeps its locks while it waits for the others
			all.add(span{part: p, from: p.Asked, to: until.Add(m.bounds.Slack)})
		}
		if from, to, hindered := m.mayBeGranted(p); hindered {
			all.add(span{part: p, from: from, to: to})
		}
		// It stays in the queue until it is given up.
		if grace := m.grace(p.Kind); grace > 0 && faulty {
			all.add(span{part: p, from: max(p.Asked, since.Add(-m.bounds.Command)),
				to: until.Add(grace + m.bounds.Slack), registered: true})
		}
	}
	all.sort()
	return &all
}

// mayBeGranted returns the time during which p, whose call was not granted the lock, may have had
// it: its last request was under way, or the message of a hand-over came, just as the wait ended,
// and p released the lock. A hindered p could not withdraw from a hand-over, so it had the lock for
// a lease. Waiters that had polled just before did not poll again for another lease.
func (m *memory) mayBeGranted(p part) (from, to Instant, hindered bool) {
	if p.Wait == 0 || p.Granted() || p.Kind != Plain && p.Kind != Fenced {
		return 0, 0, false
	}
	if _, killed := m.h.Killed[p.Process]; killed && p.Answered == 0 {
		return 0, 0, false // see mayHold
	}
	until := m.h.waitEnds(p.Acquisition)
	left := until.Add(m.bounds.Command)
	if last, hindered := m.h.faultyUntil(p.Process, p.Asked, left); hindered && m.bounds.HandsOver {
		return p.Asked, last.Add(m.bounds.Command + 2*m.bounds.Lease + m.bounds.Slack), true
	}
	return until.Add(-m.bounds.brief()), until.Add(m.bounds.brief()), false
}

// grace returns how long a lock waits for the next waiter: a fair lock for one whose process hangs,
// and readers for a writer, for the watchdog's lease.
func (m *memory) grace(kind Kind) time.Duration {
	switch kind {
	case Fair:
		return lingering
	case Write:
		return m.bounds.Lease
	default:
		return 0
	}
}
