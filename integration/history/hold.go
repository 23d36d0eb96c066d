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

// shared reports whether both may hold at once although their owners differ.
func (p part) shared(other part) bool { return p.Kind == Read && other.Kind == Read }

// conflicts reports whether p and other may never hold at the same time.
func (p part) conflicts(other part) bool { return p.owner() != other.owner() && !p.shared(other) }

// quorum reports whether one of the locks is a RedLock.
func (a *Acquisition) quorum() bool {
	return slices.ContainsFunc(a.Locks, func(lock Lock) bool { return lock.Kind == Quorum })
}

// names returns the parts by the name of the lock, each list in the order in which they were asked
// for.
func (h *History) names() map[string][]part {
	names := map[string][]part{}
	for _, a := range h.Acquisitions {
		for _, lock := range a.Locks {
			names[lock.Name] = append(names[lock.Name], part{a, lock.Kind})
		}
	}
	return names
}

// granted returns the parts that were granted.
func granted(parts []part) []part {
	var holds []part
	for _, p := range parts {
		if p.Granted() {
			holds = append(holds, p)
		}
	}
	return holds
}

// faulty reports whether a fault concerned the process at any time between two instants.
func (h *History) faulty(process string, from, to Instant) bool {
	_, faulty := h.faultySince(process, from, to)
	return faulty
}

// faultySince returns when the first of those faults began.
func (h *History) faultySince(process string, from, to Instant) (since Instant, faulty bool) {
	for _, p := range h.Faults {
		if p.Concerns(process) && p.From <= to && p.To >= from && (!faulty || p.From < since) {
			since, faulty = p.From, true
		}
	}
	return since, faulty
}

// faultyUntil returns when the last of those faults was over.
func (h *History) faultyUntil(process string, from, to Instant) (until Instant, faulty bool) {
	for _, p := range h.Faults {
		if p.Concerns(process) && p.From <= to && p.To >= from {
			until, faulty = max(until, p.over()), true
		}
	}
	return until, faulty
}

// calm reports whether a's process felt no fault from a's request to an instant: not even one that
// delayed a command, or kept a release and so left a lease. Then all that goes wrong is the lock's
// doing.
func (h *History) calm(a *Acquisition, bounds Bounds, to Instant) bool {
	return !h.faulty(a.Process, a.Asked.Add(-bounds.Command-bounds.Lease), to)
}

// spared reports whether a's process felt no fault that excuses a breach of the invariant, in the
// time of calm.
func (h *History) spared(invariant string, a *Acquisition, bounds Bounds, to Instant) bool {
	from := a.Asked.Add(-bounds.Command - bounds.Lease)
	return !slices.ContainsFunc(h.Faults, func(p Period) bool {
		return p.Concerns(a.Process) && p.From <= to && p.To >= from && !p.spares(invariant, a)
	})
}

// inSpiteOf returns a text with the faults near a that spare the invariant, up to an instant.
func (h *History) inSpiteOf(invariant string, a *Acquisition, to Instant) string {
	var faults []string
	for _, p := range h.Faults {
		if p.Concerns(a.Process) && p.From <= to && p.To >= a.Asked && p.spares(invariant, a) &&
			!slices.Contains(faults, p.Fault) {
			faults = append(faults, p.Fault)
		}
	}
	if len(faults) == 0 {
		return ""
	}
	return " but " + strings.Join(faults, ", ")
}

// givenUp reports whether a's call may have been given up at an instant: the process was about to
// end, or the hold whose context it had was over.
func (m *memory) givenUp(a *Acquisition, at Instant) bool {
	return m.h.Stopping != 0 && at >= m.h.Stopping || m.expired(a, at) ||
		strings.Contains(a.Error, "context canceled")
}

// ends returns the window in which a granted hold must have ended on the servers. Without a
// confirmed release it begins when the holder trusted the hold for the last time, and ends with the
// last lease that it may have got.
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
	// When a MultiLock loses one part, it keeps the others until Unlock.
	case a.Lost != 0 && len(a.Locks) == 1:
		latest = min(latest, a.Lost.Add(rest))
	}
	// A nested one may extend the lease of the outermost, and the other way round.
	if a.Fixed && a.Gone == 0 && !a.Nested() {
		latest = min(latest, h.extended(a).Add(max(a.Lease, bounds.Lease)+bounds.Slack))
	}
	return a.Trusted, max(a.Trusted, latest)
}

// extended returns the last instant at which the lease of an unreleased hold without renewal can
// have been set: by itself, or by another level of its owner.
func (h *History) extended(a *Acquisition) Instant {
	last := a.Answered
	for _, level := range h.levels[a.owner()] {
		switch {
		case level == a || level.Outcome == Refused || level.Outcome == Failed:
		case level.Answered == 0, !level.Fixed && level.Gone == 0:
			return h.End
		default:
			last = max(last, level.Answered, level.Gone)
		}
	}
	return last
}

// mayHold returns the time during which an acquisition that was not granted, or not yet, may have
// the lock or a part of it. It returns false if that is impossible.
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
			// One of its attempts may have been executed and its reply lost; cleanup goes on in the
			// background.
			return a.Asked, h.executed(a, a.Answered, bounds).Add(rest), true
		}
		// A call for several locks acquires some before it finds out that it cannot have all.
		return a.Asked, a.Answered.Add(bounds.Slack), len(a.Locks) > 1 || a.Locks[0].Kind == Quorum
	default:
		if killed, ok := h.Killed[a.Process]; ok {
			return a.Asked, h.executed(a, killed, bounds).Add(rest), true
		}
		return a.Asked, h.End, true
	}
}

// executed returns the last instant at which a command of a call that was over may have been
// executed: a network or a server that stalls executes it when it goes on.
func (h *History) executed(a *Acquisition, over Instant, bounds Bounds) Instant {
	last := over
	for _, p := range h.Faults {
		if p.Delays && p.Concerns(a.Process) && p.From <= over.Add(bounds.Command) &&
			p.To >= a.Asked {
			last = max(last, p.To)
		}
	}
	return last
}
