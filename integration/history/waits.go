package history

import (
	"fmt"
	"time"
)

// early is how much before the end of its wait a call may give up.
const early = 20 * time.Millisecond

// waits: a call of Lock or TryLock ends within its wait and the time of one command, one of Unlock
// within the latter. A call for several locks that does not wait has the time of one command for
// each lock, because it tries one after the other. No call of a process that goes on stays without
// a reply. The time for which a process was stopped, or the whole machine stood still, is not
// counted.
//
// Without a fault near, or with one that spares waits, they are bounded more closely: a call takes
// no command longer, and is not refused before the wait is over. Nor does it fail before, with an
// outcome that is unknown.
func (h *History) waits(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	for _, a := range h.Acquisitions {
		if a.Answered == 0 || a.Releasing != 0 && a.Gone == 0 {
			if !h.stopsForGood(a.Process) {
				verdict.Judged[Waits]++
				verdict.breach(h.unanswered(a))
			}
		}
		if a.Gone != 0 {
			verdict.Judged[Waits]++
			took := a.Gone.Sub(a.Releasing) - h.stopped(a.Process, a.Releasing, a.Gone)
			if limit := bounds.Command + bounds.late(h.spared(Waits, a, bounds, a.Gone)); took > limit {
				verdict.breach(Breach{Invariant: Waits, At: a.Gone, Between: []*Acquisition{a},
					Text: fmt.Sprintf("%v: Unlock took %v, longer than %v", a, took, limit)})
			}
		}
		if a.Answered == 0 || a.Wait < 0 { // without limit
			continue
		}
		verdict.Judged[Waits]++
		calm := h.spared(Waits, a, bounds, a.Answered)
		limit := a.Wait + bounds.late(calm)
		switch {
		case a.Wait == 0:
			limit += bounds.Command * time.Duration(len(a.Locks))
		case !calm:
			limit += bounds.Command
		}
		took := a.Answered.Sub(a.Asked) - h.stopped(a.Process, a.Asked, a.Answered)
		switch {
		case took > limit:
			verdict.breach(Breach{Invariant: Waits, At: a.Answered, Between: []*Acquisition{a},
				Text: fmt.Sprintf("%v took %v with a wait of %v, later than %v", a, took, a.Wait,
					limit)})
		case calm && (a.Outcome == Refused || a.Outcome == Unknown && !hasty(a, bounds)) &&
			took < a.Wait-early && !a.quorum() && !m.givenUp(a, a.Answered):
			verdict.breach(Breach{Invariant: Waits, At: a.Answered, Between: []*Acquisition{a},
				Text: fmt.Sprintf("%v: %s after %v, before its wait of %v was over%s: %s", a,
					a.Outcome, took, a.Wait, h.inSpiteOf(Waits, a, a.Answered), a.Error)})
		}
	}
}

// late returns how late a call may be.
func (b Bounds) late(calm bool) time.Duration {
	if calm {
		return b.brief()
	}
	return b.Slack
}

// unanswered returns the breach of a call that never returned.
func (h *History) unanswered(a *Acquisition) Breach {
	call, since := "Unlock", a.Releasing
	if a.Answered == 0 {
		call, since = "the call", a.Asked
	}
	return Breach{Invariant: Waits, At: since, Between: []*Acquisition{a},
		Text: fmt.Sprintf("%v: %s has no answer after %v", a, call, h.End.Sub(since))}
}

// Standstill is the fault of a machine that stood still. The runner and its proxies did not run, so
// no command passed, whatever the processes did.
const Standstill = "standstill of the machine"

// stopped returns how long the process was stopped, or the machine stood still, between two
// instants.
func (h *History) stopped(process string, from, to Instant) (sum time.Duration) {
	for _, p := range h.Faults {
		if p.Fault == Standstill || p.Fault == string(Stopped) && p.Concerns(process) {
			sum += max(0, min(p.To, to).Sub(max(p.From, from)))
		}
	}
	return sum
}

// stopsForGood reports whether the process was killed, or is still stopped.
func (h *History) stopsForGood(process string) bool {
	if _, killed := h.Killed[process]; killed {
		return true
	}
	for _, p := range h.Faults {
		if p.Fault == string(Stopped) && p.Concerns(process) && p.To == h.End {
			return true
		}
	}
	return false
}
