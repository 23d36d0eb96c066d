package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The longest times of a fair lock.
const (
	// turnOfTheDead is that of the heads of its queue that nobody listens for, once somebody looked:
	// half a second for the first of a process, less for the others, and a margin.
	turnOfTheDead = 2 * time.Second
	longestNap    = 5 * time.Second // of those behind them, until they look
)

// progress: while somebody waits patiently for a lock that nobody holds, it is granted to somebody,
// however many others come and leave.
//
// This sees what wakeUps excuses. A call of unknown outcome may hold the lock for a lease, so where
// callers leave in the middle of commands all the time, one of them always may. But what they leave
// is cleaned up in a moment, so together they are no excuse. Neither are places in the queue of a
// fair lock once the faults are over: those who live come or give them up.
//
// Holds are an excuse, also MultiLocks that wait for the rest, and a fault of any process, until
// what was locked during it has run out. A fair lock may also have to pass over somebody who was
// killed in its queue.
func (h *History) progress(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	troubled := h.troubles(bounds)
	for name, parts := range h.names() {
		if parts[0].Kind == Quorum {
			continue
		}
		limit := func(from Instant) time.Duration {
			longest := bounds.WakeUp + bounds.Slack
			if parts[0].Kind == Fair && h.killedBefore(from) {
				longest += passingOver(parts, from)
			}
			return longest
		}
		var waited, ready []interval // ready: as if nobody had been granted the lock
		witnesses := h.witnessesOfStalls(parts, bounds)
		for _, w := range witnesses {
			until := h.waitEnds(w)
			deadline := w.Asked.Add(w.Wait)
			if w.Wait < 0 {
				deadline = max(until, w.Asked.Add(limit(w.Asked)+1))
			}
			waited = append(waited, h.beforeStopping(w.Asked, until))
			ready = append(ready, h.beforeStopping(w.Asked, deadline))
		}
		for _, calm := range without(merged(ready), troubled) {
			if calm.length() > limit(calm.from) {
				verdict.Judged[Progress]++
			}
		}
		for _, free := range without(without(merged(waited), troubled), h.taken(m, parts)) {
			if free.length() <= limit(free.from) {
				continue
			}
			in := slices.DeleteFunc(slices.Clone(witnesses), func(w *Acquisition) bool { return w.Asked >= free.to || h.waitEnds(w) <= free.from })
			verdict.breach(Breach{Invariant: Progress, At: free.from, Between: in[:min(len(in), 4)],
				Text: fmt.Sprintf("%q was granted to nobody for %v, longer than %v, although nobody had it; %d waited patiently, such as %v",
					name, free.length(), limit(free.from), len(in), in[0])})
		}
	}
}

// witnessesOfStalls returns the calls that wait for long enough to prove a stall.
func (h *History) witnessesOfStalls(parts []part, bounds Bounds) []*Acquisition {
	var all []*Acquisition
	for _, p := range parts {
		if (p.Wait < 0 || p.Wait >= bounds.WakeUp) && len(p.Locks) == 1 {
			all = append(all, p.Acquisition)
		}
	}
	return all
}

// beforeStopping returns the part of an interval before the processes were told to end.
func (h *History) beforeStopping(from, to Instant) interval {
	if h.Stopping != 0 {
		from, to = min(from, h.Stopping), min(to, h.Stopping)
	}
	return interval{from, to}
}

// taken returns when somebody held a lock, or a MultiLock kept it.
func (h *History) taken(m *memory, parts []part) []interval {
	var all []interval
	for _, p := range parts {
		if len(p.Locks) > 1 {
			all = append(all, interval{p.Asked, h.waitEnds(p.Acquisition).Add(m.bounds.Slack)})
		}
		if _, to, _ := m.mayHold(p.Acquisition); p.Granted() {
			all = append(all, interval{p.Answered, to})
		}
	}
	return merged(all)
}

// troubles returns when a fault of any process was felt, or something that was locked during it may
// not have run out.
func (h *History) troubles(bounds Bounds) []interval {
	var all []interval
	for _, p := range h.Faults {
		all = append(all, interval{p.From, p.over().Add(bounds.Lease + bounds.Command)})
	}
	return merged(all)
}

// killedBefore reports whether a process was killed before an instant.
func (h *History) killedBefore(at Instant) bool {
	for _, killed := range h.Killed {
		if killed < at {
			return true
		}
	}
	return false
}

// passingOver returns how long it may take from an instant until the dead head of a queue is passed
// over: somebody asks, which begins its turn, and somebody asks again when that is over.
func passingOver(parts []part, from Instant) time.Duration {
	next := func(at Instant) Instant {
		i, _ := slices.BinarySearchFunc(parts, at, func(p part, at Instant) int { return cmp.Compare(p.Asked, at) })
		if last := at.Add(longestNap); i == len(parts) || parts[i].Asked > last {
			return last
		}
		return parts[i].Asked
	}
	return next(next(from).Add(turnOfTheDead)).Sub(from)
}
