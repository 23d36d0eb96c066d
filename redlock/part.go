package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// part is the share of an acquisition on one node: a request, then what the node has granted, then
// a release. Each further request to a node has a new part, with another owner.
type part struct {
	acquisition *acquisition
	node        compose.Node
	owner       string // on the node
	lease       time.Duration
	ballot      lua.Ballot // the request with these
	askedAt     time.Time  // when the request was given to the pool
	request     wait.Job
	release     wait.Job // the first try of the release

	// Guarded by the acquisition's mutex.
	state       state
	absent      time.Time               // since when it may be missing on the node; see absentFrom
	confirmed   time.Time               // when the latest request was sent that the node confirmed
	hold        compose.NodeAcquisition // renewed by its client; nil until granted
	call        *wait.Job               // the latest
	unconfirmed bool                    // the node may have executed a release without a reply
	err         error                   // why the node does not count, or did not extend or release
}

// Run asks the node for the part, blocks for the reply, and handles it. Run sends the request even
// if the acquisition is over, because Run would have to wait for its mutex to know, and the
// acquisition holds the mutex while it asks other nodes.
func (p *part) Run() {
	sent, vote, err := time.Now(), lua.Vote{}, transport.ErrThrown
	defer func() { p.answered(sent, vote, err) }()
	vote, err = p.node.Acquire(p.ballot)
}

// answered handles the reply to the request that was sent at sent. Instead of a reply, a hook
// around rueidis may have ended the goroutine.
func (p *part) answered(sent time.Time, vote lua.Vote, err error) {
	a := p.acquisition
	deadline := watchdog.Deadline(sent, p.lease)
	mayBeHeld := vote.Granted || err != nil && rediserr.ClassOf(err) == rediserr.ClassUnknown
	var hold compose.NodeAcquisition
	switch h := vote.Holder; {
	case err != nil:
	case vote.Already:
		// Only other nodes got requests for this owner before. So this node is one of their servers under
		// another name, and must not count twice.
		mayBeHeld, err = false, errSameServer
	case h != nil:
		err = p.node.Held(*h)
	case !vote.Granted:
		err = &DelayedError{For: vote.Delayed, Emptied: vote.Emptied}
	case time.Until(deadline) <= 0:
		err = fmt.Errorf("granted, but the reply came after the lease of %v; use a longer lease", p.lease)
	case p.current() == asked:
		hold = p.node.Hold(p.owner, a.session.Key().token, a.site, deadline, p)
		if hold == nil {
			err = rlock.ErrClosed
		}
	}
	release := false
	a.do(func() {
		err = cmp.Or(err, p.err) // the hold may have ended already
		release = p.state == unwanted && mayBeHeld
		switch {
		case release:
			p.state.enter(releaseSent)
		case p.state == unwanted:
			p.state.enter(gone)
		case err == nil:
			p.state.enter(granted)
			p.hold, p.confirmed = hold, sent
			a.joined(p)
			p.catchUp()
		default:
			p.state.enter(missing)
			if p.failed("acquire", err); mayBeHeld {
				p.cleanUp() // no later request uses this owner
			}
		}
	})
	if release {
		if hold != nil {
			hold.Drop()
		}
		p.free()
	}
}

// current returns the state.
func (p *part) current() state {
	p.acquisition.mu.Lock()
	defer p.acquisition.mu.Unlock()
	return p.state
}

// Ended handles the end of the part, because the part is lost on its node, the node's client is
// closed, or finish has dropped the part, which has no effect.
func (p *part) Ended(reason error) { p.acquisition.do(func() { p.lost(reason) }) }

// Renewed handles a renewal of the part, and asks the nodes without a part to rejoin.
func (p *part) Renewed(sent time.Time) {
	a := p.acquisition
	a.do(func() {
		p.confirm(sent)
		for i, node := range a.lock.nodes {
			// Every part reports its renewal. Ask a missing node only once for all of them.
			soon := time.Since(a.parts[i].askedAt) <= node.WatchdogLease()/6
			if a.state == held && a.renews() && a.parts[i].state == missing && !soon {
				owner, lease := node.NewOwner(), node.WatchdogLease()
				ballot, absent := lua.NewBallot(owner, lease, a.lock.delay), a.parts[i].absentFrom()
				a.parts[i] = new(part).ask(a, node, owner, lease, ballot)
				a.parts[i].absent = absent
			}
		}
	})
}

// The methods below are called with mu held.

// ask makes p a new part of a node, and requests the part for an owner that is new to the node. ask
// returns p.
func (p *part) ask(a *acquisition, node compose.Node, owner string, lease time.Duration,
	ballot lua.Ballot,
) *part {
	*p = part{acquisition: a, node: node, owner: owner, lease: lease, ballot: ballot,
		askedAt: time.Now(), state: missing}
	if p.failed("acquire", p.send(&p.request, p, lease)); p.err == nil {
		a.longest = max(a.longest, lease)
		p.state.enter(asked)
	}
	return p
}

// failed records why the node does not count, and notifies the tracer of its client of a failure.
func (p *part) failed(operation string, err error) {
	p.err = err
	if err != nil && heldError(err) == nil && !errors.Is(err, rlock.ErrClosed) {
		p.node.Failed(operation, err)
	}
}

// send gives a call to the node's pool, and returns an error if it cannot.
func (p *part) send(call *wait.Job, run wait.Runner, lease time.Duration) error {
	if err := unavailable(p.node); err != nil {
		return err
	}
	call.Runner, call.Timeout = run, p.acquisition.lock.nodeTimeout(p.node, lease)
	if !p.node.Pool().Do(call) {
		return rlock.ErrClosed
	}
	p.call = call
	return nil
}

// nodeTimeout returns how long to wait for a reply of a node. By default, at least nine tenths of a
// lease of 50 ms or more are left for the caller. Short measured round trips never reduce the
// timeout below a small part of the lease, because in a burst of locks, or after a pause of this
// process, round trips take many times as long as in quiet times.
func (l *Lock) nodeTimeout(node compose.Node, lease time.Duration) time.Duration {
	if l.options.NodeTimeout > 0 {
		return l.options.NodeTimeout
	}
	least := min(max(lease/200, 5*time.Millisecond), 50*time.Millisecond)
	return node.Pool().Timeout(least, min(lease/10, node.CommandTimeout()))
}

// unavailable returns why a node must not get a request; nil if it may.
func unavailable(node compose.Node) error {
	if wait.Fired(node.Closing()) {
		return rlock.ErrClosed
	}
	if stalled := node.Pool().Stalled(); stalled > 0 {
		return stalledError{stalled}
	}
	return nil
}

// catchUp renews and extends a part that was granted late like the others. An extension in progress
// also counts the part, and may need the part for a quorum.
func (p *part) catchUp() {
	a := p.acquisition
	if a.state == held && a.renews() {
		p.hold.SetRenew(true)
	}
	levels := len(a.levels)
	if a.round != nil {
		levels = max(levels, a.round.levels) // the node may execute the two in any order
	}
	more := time.Until(a.extendedTo).Truncate(time.Millisecond)
	if more > 0 && p.hold.Deadline().Before(a.extendedTo.Add(-watchdog.Drift(more))) {
		p.extend(&extension{levels: levels, lease: more})
	}
	if a.round != nil {
		p.extend(a.round)
	}
}

// lost records that the node does not hold the part any more.
func (p *part) lost(reason error) {
	if p.state != granted && p.state != asked {
		return
	}
	if lost := (*rlock.LostError)(nil); errors.As(reason, &lost) {
		reason = lost.Reason // a part is lost, not the lock
	}
	p.err = reason
	if p.state == asked {
		return // Run is about to report the grant
	}
	a := p.acquisition
	deadline := a.trustedUntil()
	p.absent = p.lostFrom(reason)
	p.state.enter(missing)
	p.failed("hold", reason)
	if a.state == asking && errors.Is(reason, rlock.ErrClosed) {
		// Close does not release held locks. This lock is not held yet, and nothing can release the part
		// later.
		p.cleanUp()
	}
	a.checkGaps(reason, deadline)
	a.check(reason, deadline)
}
