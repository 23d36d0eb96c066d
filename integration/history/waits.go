package history

import (
	"fmt"
	"time"
)

// waits: a call of Lock or TryLock ends within its wait and the time that one command may take, and no call of a process
// that goes on stays without an answer. A process cannot answer while it is stopped, so that time is not counted.
func (h *History) waits(bounds Bounds, verdict *Verdict) {
	for _, a := range h.Acquisitions {
		if a.Answered == 0 || a.Releasing != 0 && a.Gone == 0 {
			if !h.stopsForGood(a.Process) {
				verdict.Judged[Waits]++
				verdict.breach(h.unanswered(a))
			}
		}
		if a.Answered == 0 || a.Wait < 0 { // without limit
			continue
		}
		verdict.Judged[Waits]++
		took := a.Answered.Sub(a.Asked) - h.stopped(a.Process, a.Asked, a.Answered)
		if limit := a.Wait + bounds.Command + bounds.Slack; took > limit {
			verdict.breach(Breach{Invariant: Waits, At: a.Answered, Between: []*Acquisition{a},
				Text: fmt.Sprintf("%v took %v with a wait of %v, later than %v", a, took, a.Wait, limit)})
		}
	}
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
