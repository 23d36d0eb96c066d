package history

import (
	"fmt"
	"slices"
	"time"
)

// lingering is how long a waiter counts after it left the queue, for locks that keep its
// registration: a fair lock passes over a hung head after ten seconds, and waiters poll every five.
const lingering = 15 * time.Second

// refusals: an attempt without wait is refused only if another owner has the lock, or may have it,
// or waits for it in the same process, where only the head of the queue asks Redis. For locks with
// a queue in Redis all waiters count. Judged only if Bounds.Strict.
//
// It is no operation of the linearizable history: then calls of unknown outcome would have to be,
// each with a choice.
func (h *History) refusals(bounds Bounds, verdict *Verdict) {
	if !bounds.Strict {
		return
	}
	m := h.memory(bounds)
	contenders := map[string]*spans{}
	for name, parts := range h.names() {
		contenders[name] = h.contenders(m, parts)
	}
	for _, a := range h.Acquisitions {
		if a.Outcome != Refused || a.Wait != 0 || m.givenUp(a, a.Answered) ||
			h.faulty(a.Process, a.Asked, a.Answered) ||
			// A lock that was released may be held again.
			m.forgetting(a.Asked.Add(-bounds.Lease-bounds.Command), a.Answered) {
			continue
		}
		verdict.Judged[Linearizable]++
		if !slices.ContainsFunc(a.Locks, func(lock Lock) bool {
			return refusable(a, lock.Kind, contenders[lock.Name])
		}) {
			verdict.breach(Breach{Invariant: Linearizable, At: a.Asked, Between: []*Acquisition{a},
				Text: fmt.Sprintf("%v was refused, but nobody else can have had it: %s", a,
					a.Error)})
		}
	}
}

// refusable reports whether another owner may have been in a's way.
func refusable(a *Acquisition, kind Kind, contenders *spans) bool {
	for contender := range contenders.during(a.Asked, a.Answered) {
		everywhere := kind == Fair || kind == Read || kind == Write || kind == Quorum ||
			len(contender.Locks) > 1 || len(a.Locks) > 1
		if contender.owner() != a.owner() &&
			(!contender.queued || everywhere || contender.Process == a.Process) {
			return true
		}
	}
	return false
}

// contenders returns the times during which a call may have had the lock, or waited for it.
func (h *History) contenders(m *memory, parts []part) *spans {
	var all spans
	windows := m.windows(parts)
	narrow(windows)
	for _, w := range windows {
		_, to, _ := m.mayHold(w.Acquisition)
		all.add(span{part: w.part, from: w.startFrom, to: to})
	}
	for _, p := range parts {
		if from, to, may := m.mayHold(p.Acquisition); may && !p.Granted() {
			all.add(span{part: p, from: from, to: to})
		}
		if from, to, _ := m.mayBeGranted(p); to > 0 {
			all.add(span{part: p, from: from, to: to})
		}
		until := p.Answered
		if until == 0 {
			until = h.End
		}
		calm := h.calm(p.Acquisition, m.bounds, until)
		if p.Kind == Read || p.Kind == Write || p.Kind == Fair && !calm {
			// Waiters for each other stay registered, even after they left.
			until = until.Add(max(lingering, m.bounds.Lease))
		}
		all.add(span{part: p, from: p.Asked, to: until.Add(m.bounds.late(calm)), queued: true})
	}
	all.sort()
	return &all
}
