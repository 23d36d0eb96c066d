package history

import (
	"fmt"
	"time"
)

// early is how much before the end of its wait a call may give up.
const early = 20 * time.Millisecond

// waits: a call of Lock or TryLock ends within its wait and the time that one command may take, one of Unlock within the latter,
// and no call of a process that goes on stays without an answer. A process cannot answer while it is stopped, so that time is
// not counted.
//
// Where no fault was near, a wait is kept to more closely: it is not a command longer, and nobody is refused before it is over.
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
			if limit := bounds.Command + bounds.late(h.calm(a, bounds, a.Gone)); took > limit {
				verdict.breach(Breach{Invariant: Waits, At: a.Gone, Between: []*Acquisition{a},
					Text: fmt.Sprintf("%v: Unlock took %v, longer than %v", a, took, limit)})
			}
		}
		if a.Answered == 0 || a.Wait < 0 { // without limit
			continue
		}
		verdict.Judged[Waits]++
		calm := h.calm(a, bounds, a.Answered)
		limit := a.Wait + bounds.late(calm)
		if a.Wait == 0 || !calm {
			limit += bounds.Command
		}
		took := a.Answered.Sub(a.Asked) - h.stopped(a.Process, a.Asked, a.Answered)
		switch {
		case took > limit:
			verdict.breach(Breach{Invariant: Waits, At: a.Answered, Between: []*Acquisition{a},
				Text: fmt.Sprintf("%v took %v with a wait of %v, later than %v", a, took, a.Wait, limit)})
		case calm && a.Outcome == Refused && took < a.Wait-early && !a.quorum() && !m.givenUp(a, a.Answered):
			verdict.breach(Breach{Invariant: Waits, At: a.Answered, Between: []*Acquisition{a},
				Text: fmt.Sprintf("%v was refused after %v, before its wait of %v was over: %s", a, took, a.Wait, a.Error)})
		}
	}
}

// late is how late a call may be.
func (b Bounds) late(calm bool) time.Duration {
	if calm {
		return b.brief()
	}
	return b.Slack
}

// unanswered is the breach of a call that never came back.
func (h *History) unanswered(a *Acquisition) Breach {
	call, since := "Unlock", a.Releasing
	if a.Answered == 0 {
		call, since = "the call", a.Asked
	}
	return Breach{Invariant: Waits, At: since, Between: []*Acquisition{a},
		Text: fmt.Sprintf("%v: %s has no answer after %v", a, call, h.End.Sub(since))}
}

// stopped is for how long the process stood still from from to to.
func (h *History) stopped(process string, from, to Instant) (sum time.Duration) {
	for _, p := range h.Faults {
		if p.Fault == string(Stopped) && p.Concerns(process) {
			sum += max(0, min(p.To, to).Sub(max(p.From, from)))
		}
	}
	return sum
}

// stopsForGood tells whether the process was killed, or is stopped still.
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
