package history

import (
	"fmt"
	"time"
)

// tooShort is a wait that may end before the first reply on a busy machine.
const tooShort = 250 * time.Millisecond

// answers: a call that acquires or releases a lock returns the outcome, unless a fault concerned
// its process. An unknown outcome is for failures, not for a lock that lost track.
//
// A wait may end while a command is under way, such as one after a wake-up. That is a breach only
// if it is the rule.
//
// RedLocks are not judged: a node that has just started is not counted, so that acquiring even a
// free lock may fail.
func (h *History) answers(bounds Bounds, verdict *Verdict) {
	m := h.memory(bounds)
	var cutOff []*Acquisition // by the end of the wait, in the middle of a command
	refused := 0              // at the end of the wait
	for _, a := range h.Acquisitions {
		if a.quorum() {
			continue
		}
		if a.Answered != 0 && h.spared(Answers, a, bounds, a.Answered) && !m.givenUp(a, a.Answered) &&
			!hasty(a, bounds) {
			verdict.Judged[Answers]++
			switch over := a.Wait > 0 && a.Answered >= a.Asked.Add(a.Wait-early); {
			case over && a.Outcome == Refused:
				refused++
			case over && a.Outcome == Unknown:
				cutOff = append(cutOff, a)
			case a.Outcome == Unknown || a.Outcome == Failed:
				verdict.breach(Breach{Invariant: Answers, At: a.Answered,
					Between: []*Acquisition{a},
					Text: fmt.Sprintf("%v: %s, although no fault was near%s: %s", a, a.Outcome,
						h.inSpiteOf(Answers, a, a.Answered), a.Error)})
			}
		}
		if a.Gone != 0 && h.spared(Answers, a, bounds, a.Gone) &&
			(h.Stopping == 0 || a.Gone < h.Stopping) {
			verdict.Judged[Answers]++
			if a.Release == Unconfirmed {
				verdict.breach(Breach{Invariant: Answers, At: a.Gone, Between: []*Acquisition{a},
					Text: fmt.Sprintf("%v: an unconfirmed release, although no fault was near%s: %s",
						a, h.inSpiteOf(Answers, a, a.Gone), a.Error)})
			}
		}
	}
	if few := 4; len(cutOff) > few && len(cutOff) > refused/2 {
		verdict.breach(Breach{Invariant: Answers, At: cutOff[0].Answered, Between: cutOff[:few],
			Text: fmt.Sprintf("%v: unknown, although no fault was near, like %d others when "+
				"their wait was over, of which %d were refused: %s",
				cutOff[0], len(cutOff)-1, refused, cutOff[0].Error)})
	}
}

// hasty reports whether a's wait or lease may have ended before the first reply, or the lease of
// one part of a MultiLock while another was waited for.
func hasty(a *Acquisition, bounds Bounds) bool {
	return a.Wait > 0 && a.Wait < tooShort ||
		a.Fixed && (a.Lease < bounds.brief() || len(a.Locks) > 1 && a.Lease < a.Wait)
}
