package history

import (
	"slices"
	"strings"
)

// part is one lock of an acquisition: a MultiLock has several.
type part struct {
	*Acquisition
	Kind Kind
}

// shared tells whether both may hold at once, although they are different owners.
func (p part) shared(other part) bool { return p.Kind == Read && other.Kind == Read }

// conflicts tells whether p and other may never hold at the same time.
func (p part) conflicts(other part) bool { return p.owner() != other.owner() && !p.shared(other) }

// quorum tells whether a RedLock is among the locks.
func (a *Acquisition) quorum() bool {
	return slices.ContainsFunc(a.Locks, func(lock Lock) bool { return lock.Kind == Quorum })
}

// names gives the parts by the name of the lock, each list in the order in which they were asked for.
func (h *History) names() map[string][]part {
	names := map[string][]part{}
	for _, a := range h.Acquisitions {
		for _, lock := range a.Locks {
			names[lock.Name] = append(names[lock.Name], part{a, lock.Kind})
		}
	}
	return names
}

// granted gives those of the parts that were granted.
func granted(parts []part) []part {
	var holds []part
	for _, p := range parts {
		if p.Granted() {
			holds = append(holds, p)
		}
	}
	return holds
}

// faulty tells whether a fault that concerns the process was there at any time from from to to.
func (h *History) faulty(process string, from, to Instant) bool {
	_, troubled := h.troubledSince(process, from, to)
	return troubled
}

// troubledSince gives when the first of those faults began.
func (h *History) troubledSince(process string, from, to Instant) (since Instant, troubled bool) {
	for _, p := range h.Faults {
		if p.Concerns(process) && p.From <= to && p.To >= from && (!troubled || p.From < since) {
			since, troubled = p.From, true
		}
	}
	return since, troubled
}

// troubledUntil gives when the last of those faults was over.
func (h *History) troubledUntil(process string, from, to Instant) (until Instant, troubled bool) {
	for _, p := range h.Faults {
		if p.Concerns(process) && p.From <= to && p.To >= from {
			until, troubled = max(until, p.over()), true
		}
	}
	return until, troubled
}

// calm tells whether nothing hit a's process that could be felt from when a was asked for to an instant: not even something that
// held up a command, or a release of which a lease was left. Then whatever goes wrong is the lock's own doing.
func (h *History) calm(a *Acquisition, bounds Bounds, to Instant) bool {
	return !h.faulty(a.Process, a.Asked.Add(-bounds.Command-bounds.Lease), to)
}

// givenUp tells whether a's call may have been given up at an instant, because the process was about to end or the hold whose
// context it had was over.
func (m *memory) givenUp(a *Acquisition, at Instant) bool {
	return m.h.Stopping != 0 && at >= m.h.Stopping || m.expired(a, at) || strings.Contains(a.Error, "context canceled")
}

// ends gives the window in which a granted hold must have ended on the servers. For one that was not released well it begins
// when the holder has trusted it for the last time, and ends when the last lease that it may have got must be over.
func (h *History) ends(a *Acquisition, bounds Bounds) (earliest, latest Instant) {
	if a.Release == Released {
		return a.Releasing, a.Gone
	}
	rest := a.Lease + bounds.Command + bounds.Slack
	latest = h.End
	if killed, ok := h.Killed[a.Process]; ok {
		latest = min(latest, h.executed(a, killed, bounds).Add(rest)) // a renewal
	}
	switch {
	case a.Gone != 0:
		latest = min(latest, a.Gone.Add(rest))
	case a.Lost != 0 && len(a.Locks) == 1: // when a MultiLock loses one part, it keeps the others until Unlock
		latest = min(latest, a.Lost.Add(rest))
	}
	if a.Fixed && a.Gone == 0 && !a.Nested() { // a nested one may lengthen the lease of the outermost, and the other way round
		latest = min(latest, a.Answered.Add(max(a.Lease, bounds.Lease)+bounds.Slack))
	}
	return a.Trusted, max(a.Trusted, latest)
}

// mayHold gives the time during which it is possible that an acquisition that was not granted, or not yet, has the lock or
// a part of it, and false if that is impossible.
func (h *History) mayHold(a *Acquisition, bounds Bounds) (from, to Instant, may bool) {
	rest := a.Lease + bounds.Command + bounds.Slack
	switch a.Outcome {
	case Granted:
		_, latest := h.ends(a, bounds)
		return a.Asked, latest, true
	case Unknown:
		return a.Asked, h.executed(a, a.Answered, bounds).Add(rest), true
	case Refused, Failed:
		if h.faulty(a.Process, a.Asked, a.Answered) {
			// One of its attempts may have been executed and its answer lost, which is cleaned up in the background.
			return a.Asked, h.executed(a, a.Answered, bounds).Add(rest), true
		}
		// Those of several parts take some before they find out that they do not get all.
		return a.Asked, a.Answered.Add(bounds.Slack), len(a.Locks) > 1 || a.Locks[0].Kind == Quorum
	default:
		if killed, ok := h.Killed[a.Process]; ok {
			return a.Asked, h.executed(a, killed, bounds).Add(rest), true
		}
		return a.Asked, h.End, true
	}
}

// executed gives until when the last command of a call that was over at an instant may have been executed: a network or a server
// that stood still just then does that when it goes on.
func (h *History) executed(a *Acquisition, over Instant, bounds Bounds) Instant {
	last := over
	for _, p := range h.Faults {
		if p.Delays && p.Concerns(a.Process) && p.From <= over.Add(bounds.Command) && p.To >= a.Asked {
			last = max(last, p.To)
		}
	}
	return last
}
