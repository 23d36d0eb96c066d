package redlock

import (
	"errors"
	"slices"
	"time"

	"holdfast/internal/wait"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// A gap is a time during which a node may have been without its part. A node reports a loss late,
// and nobody knows when the node lost the part. So the gap begins when the node last confirmed the
// part, and ends when the node has granted the part again. If too many nodes had a gap at the same
// moment, another owner may have had a quorum then. The lock is lost, even if enough nodes have
// granted their parts again.
type gap struct {
	node        int // its index
	from, until time.Time
}

// soonGranted is how long after the acquisition a node may grant its part without a gap. The
// slowest node nearly always grants its part after the quorum, and with a gap, one loss on another
// node would end the hold.
const soonGranted = 100 * time.Millisecond

// The methods below are called with mu held.

// absentFrom returns the begin of the gap of a node whose part is not granted.
func (p *part) absentFrom() time.Time {
	if p.absent.IsZero() { // the node has never had the part
		return p.acquisition.acquired.Add(soonGranted)
	}
	return p.absent
}

// lostFrom returns the begin of the gap of a node whose part was lost for a reason.
func (p *part) lostFrom(reason error) time.Time {
	if errors.Is(reason, watchdog.ErrExpired) || errors.Is(reason, rlock.ErrClosed) {
		return p.hold.Deadline() // the node did not report a loss
	}
	return p.confirmed
}

// confirm notes that the node had the part when it executed a request sent at sent.
func (p *part) confirm(sent time.Time) {
	if sent.After(p.confirmed) {
		p.confirmed = sent
	}
}

// joined notes the end of the gap of a node that has granted its part. joined also asks the other
// nodes whether they still have their parts. Once a node has confirmed that, a later loss on that
// node does not overlap with this gap.
func (a *acquisition) joined(p *part) {
	from, now := p.absentFrom(), time.Now()
	if a.state != held || !from.Before(now) {
		return
	}
	a.gaps = slices.DeleteFunc(a.gaps, func(g gap) bool { // no later gap can overlap with these
		return a.countIf(func(p *part) bool {
			return p.state == granted && p.confirmed.Before(g.until)
		}) == 0
	})
	a.gaps = append(a.gaps, gap{slices.Index(a.parts, p), from, now})
	for _, other := range a.parts {
		if other != p && other.state == granted {
			hold := other.hold
			other.node.Pool().Do(&wait.Job{Runner: wait.Func(func() { other.verify(hold.Drop) }),
				Timeout: a.lock.nodeTimeout(other.node, other.lease)})
		}
	}
}

// verify asks the node whether it still has the part, without mu held, and blocks for the reply. A
// renewal to the shortest lease changes nothing on the node. If the part is lost, verify calls
// drop.
func (p *part) verify(drop func()) {
	sent := time.Now()
	yes, err := p.node.Extend(p.owner, 0, shortestLease)
	if err != nil {
		return // the next renewal asks again
	}
	p.acquisition.do(func() {
		if yes {
			p.confirm(sent)
		} else {
			p.lost(watchdog.ErrGone)
		}
	})
	if !yes {
		drop()
	}
}

// hadAt returns a function that reports whether the node of a part surely had the part at a moment.
// A moment before the acquisition counts as the moment of the acquisition.
func (a *acquisition) hadAt(at time.Time) func(p *part) bool {
	if at.Before(a.acquired) {
		at = a.acquired
	}
	return func(p *part) bool {
		if p.state != granted && !p.absentFrom().After(at) {
			return false
		}
		node := slices.Index(a.parts, p)
		return !slices.ContainsFunc(a.gaps, func(g gap) bool {
			return g.node == node && !g.from.After(at) && g.until.After(at)
		})
	}
}

// momentWithoutQuorum returns a moment at which too few nodes surely had their parts, or found is
// false. Only the begins of gaps need a look, because the number of nodes falls only there.
func (a *acquisition) momentWithoutQuorum() (at time.Time, found bool) {
	for _, g := range a.gaps {
		if a.lackedQuorum(g.from) {
			return g.from, true
		}
	}
	for _, p := range a.parts {
		if p.state != granted && a.lackedQuorum(p.absentFrom()) {
			return p.absentFrom(), true
		}
	}
	return at, false
}

// lackedQuorum reports whether too few nodes surely had their parts when a gap began.
func (a *acquisition) lackedQuorum(begin time.Time) bool {
	return !begin.After(time.Now()) && a.countIf(a.hadAt(begin)) < a.lock.quorum
}

// checkGaps ends the acquisition, within do, if there was a moment without a quorum. reason is why
// the last part was lost, and before is the time until which the owner could trust the lock with
// that part.
func (a *acquisition) checkGaps(reason error, before time.Time) {
	if a.state != held {
		return
	}
	at, found := a.momentWithoutQuorum()
	if !found {
		return
	}
	had := a.hadAt(at)
	for _, p := range a.parts {
		if p.state == granted && !had(p) {
			p.err = errRejoined
		}
	}
	if now := time.Now(); now.Before(before) {
		before = now
	}
	stayed := func(p *part) bool { return p.state == granted && had(p) }
	a.end(lost, a.lostError(reason, stayed), before)
}
