package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The longest times of a fair lock.
const (
	// deadHead is how long dead heads of its queue delay it once it was polled: half a second for
	// the first of a process, less for the others, and a margin.
	deadHead     = 2 * time.Second
	pollInterval = 5 * time.Second // the interval at which the waiters behind them poll
)

// progress: while a caller waits patiently for a lock without a holder, the lock is granted to some
// caller, however many others come and leave.
//
// This finds what wakeUps excuses. A call of unknown outcome may hold the lock for a lease, so
// where callers leave in the middle of commands all the time, one of them always may. But what they
// leave is cleaned up in a moment, so together they are no excuse. Neither are registrations in the
// queue of a fair lock once the faults are over: the living take part or withdraw them.
//
// Holds are an excuse, also those of MultiLocks that wait for the rest, and a fault of any process,
// until what was locked during it has run out. A fair lock may also have to pass over a waiter that
// was killed in its queue.
func (h *History) progress(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	faulty := h.faultTimes(bounds)
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
		var waited, ready []interval // ready: as if the lock had been granted to none
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
		for _, calm := range without(merged(ready), faulty) {
			if calm.length() > limit(calm.from) {
				verdict.Judged[Progress]++
			}
		}
		for _, free := range without(without(merged(waited), faulty), h.heldTimes(m, parts)) {
			if free.length() <= limit(free.from) {
				continue
			}
			in := slices.DeleteFunc(slices.Clone(witnesses), func(w *Acquisition) bool {
				return w.Asked >= free.to || h.waitEnds(w) <= free.from
			})
			verdict.breach(Breach{Invariant: Progress, At: free.from, Between: in[:min(len(in), 4)],
				Text: fmt.Sprintf("%q was granted to nobody for %v, longer than %v, although "+
					"nobody had it; %d waited patiently, such as %v",
					name, free.length(), limit(free.from), len(in), in[0])})
		}
	}
}

// witnessesOfStalls returns the calls that wait long enough to prove a stall.
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

// heldTimes returns when the lock was held, or a MultiLock kept it.
func (h *History) heldTimes(m *memory, parts []part) []interval {
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

// faultTimes returns when a fault of any process was felt, or a lock acquired during it may not
// have run out.
func (h *History) faultTimes(bounds Bounds) []interval {
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
// over: a first poll begins its time, and one after its end removes it.
func passingOver(parts []part, from Instant) time.Duration {
	next := func(at Instant) Instant {
		i, _ := slices.BinarySearchFunc(parts, at, func(p part, at Instant) int {
			return cmp.Compare(p.Asked, at)
		})
		if last := at.Add(pollInterval); i == len(parts) || parts[i].Asked > last {
			return last
		}
		return parts[i].Asked
	}
	return next(next(from).Add(deadHead)).Sub(from)
}
