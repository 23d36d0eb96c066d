package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/hooks"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// part is what an acquisition has on one node: a request, then what the node has granted, then a
// release. A node that is asked again has a new part, with another owner.
type part struct {
	acquisition *acquisition
	node        hooks.Node
	owner       string // on the node
	lease       time.Duration
	askedAt     time.Time // when the request was given to the pool
	request     wait.Job
	release     wait.Job // the first try

	// The fields below are guarded by the acquisition's mutex.
	state       state
	hold        hooks.NodeHold // in the watchdog of the node's client; while granted, and until dropped
	extended    *extension     // the last one that the node has carried out
	unconfirmed bool           // a release without a reply may have been carried out
	err         error          // why the node does not count, or has not extended or released it
}

var (
	_ hooks.Part = (*part)(nil)
	_ wait.Task  = (*part)(nil)
)

// ask requests the part of node i for an owner. part.Run handles the reply. It is called with mu
// held.
func (a *acquisition) ask(i int, ownerID string, lease time.Duration) {
	p := a.parts[i]
	if p.acquisition != nil {
		p = new(part) // the node's pool may still read the first
		a.parts[i] = p
	}
	p.acquisition, p.node, p.owner, p.lease = a, a.lock.nodes[i], ownerID, lease
	p.askedAt = time.Now()
	if p.err = unavailable(p.node); p.err != nil {
		return
	}
	a.longest = max(a.longest, lease)
	p.state.step(ask)
	p.request.Task, p.request.Timeout = p, a.lock.nodeTimeout(p.node, lease)
	if !p.node.Pool().Do(&p.request) {
		p.deny(rlock.ErrClosed)
	}
}

// unavailable returns why a node must not be asked; nil if it may be.
func unavailable(node hooks.Node) error {
	select {
	case <-node.Closing():
		return rlock.ErrClosed
	default:
	}
	if stalled := node.Pool().Stalled(); stalled > 0 {
		return &stalledError{after: stalled}
	}
	return nil
}

// Run asks the node, and handles the reply. It blocks until the node replies; the acquisition may
// be over by then.
func (p *part) Run() {
	a := p.acquisition
	a.mu.Lock()
	if p.state == late {
		p.deny(nil)
		a.notify()
		a.mu.Unlock()
		return
	}
	a.mu.Unlock()
	sent := time.Now()
	vote, err := p.node.Acquire(p.owner, p.lease, a.lock.options.delay())
	taken := vote.Granted || err != nil && lua.ClassOf(err) == lua.Unknown
	deadline := watchdog.Deadline(sent, p.lease)
	var hold hooks.NodeHold
	switch {
	case vote.Again:
		// Only other nodes were asked for this owner before. This node is one of their servers
		// under another name, and must not count twice.
		err, taken = errSameServer, false
	case err != nil:
	case !vote.Granted:
		err = refusal(p.node, vote)
	case !time.Now().Before(deadline):
		err = fmt.Errorf("granted, but the answer took longer than the lease of %v", p.lease)
	default:
		if hold = p.node.Hold(p.owner, a.token, deadline, false, p); hold == nil {
			err = rlock.ErrClosed
		}
	}
	unwanted := false
	a.do(func() {
		err = cmp.Or(err, p.err) // the hold may have ended already
		unwanted = p.state == late && taken
		switch {
		case unwanted:
			p.state.step(send)
		case err != nil || p.state == late:
			p.deny(err)
			if taken {
				p.cleanUp() // this owner is never used again
			}
		default:
			p.state.step(grant)
			p.hold = hold
			p.rejoin()
		}
		a.notify()
	})
	if unwanted {
		if hold != nil {
			hold.Drop()
		}
		p.free()
	}
}

// refusal returns why a node has refused.
func refusal(node hooks.Node, v lua.Vote) error {
	if h := v.Holder; h != nil {
		return &rlock.HeldError{Lock: node.Name(), Owner: h.Owner, TTL: h.TTL, Next: h.Next}
	}
	return &DelayedError{For: v.Delayed, Emptied: v.Emptied}
}

// deny notes why the part was not granted. It is called with mu held.
func (p *part) deny(err error) {
	p.state.step(deny)
	p.err = err
}

// rejoin has a part that was granted after the others renewed and extended like them. It is called
// with mu held.
func (p *part) rejoin() {
	a := p.acquisition
	if a.state != held {
		return
	}
	if a.renews() {
		p.hold.SetRenew(true)
	}
	more := time.Until(a.extendedTo).Truncate(time.Millisecond)
	if more > 0 && p.hold.Deadline().Before(a.extendedTo.Add(-watchdog.Drift(more))) {
		p.err = p.extend(&extension{levels: len(a.levels), lease: more})
	}
}

// Ended handles the end of the part: it is lost on its node, the node's client is closed, or the
// part was dropped, which has no effect.
func (p *part) Ended(reason error) {
	var lost *rlock.LostError
	if errors.As(reason, &lost) {
		reason = lost.Reason // a part is lost, not the lock
	}
	p.acquisition.do(func() { p.lost(reason) })
}

// lost notes that the part is not held any more. It is called with mu held.
func (p *part) lost(reason error) {
	a := p.acquisition
	switch p.state {
	case granted:
	case asked:
		p.err = reason // Run has not noted yet that it was granted
		return
	default:
		return
	}
	deadline := a.trustedUntil()
	p.state.step(drop)
	p.hold, p.err = nil, reason
	a.notify()
	if a.state == asking && errors.Is(reason, rlock.ErrClosed) {
		// Close does not release what is held, but this part is not held yet. After the attempt has
		// failed, the closed client could not release it any more.
		p.cleanUp()
	}
	now := time.Now()
	if a.state != held || now.Before(a.trustedUntil()) {
		return
	}
	if now.Before(deadline) {
		deadline = now
	}
	a.lose(reason, deadline)
}

// Renewed handles the renewal of the part: it asks the nodes without a part to rejoin.
func (p *part) Renewed() {
	a := p.acquisition
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != held || !a.renews() {
		return
	}
	for i, other := range a.parts {
		// Every part reports its renewal. Ask a missing node only once for all of them.
		lease := other.node.WatchdogLease()
		if other.state == missing && time.Since(other.askedAt) > lease/6 {
			a.ask(i, other.node.NewOwner(), lease)
		}
	}
}
