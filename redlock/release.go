package redlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/internal/hooks"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Release releases a level, and with the last one the lock. It then blocks until a quorum of nodes
// has released the lock, or until there is another outcome; see run. The other nodes are released
// in the background.
func (a *acquisition) Release(h *rlock.Hold) error {
	a.mu.Lock()
	a.expire()
	before := a.renews()
	i := slices.IndexFunc(a.levels, func(l level) bool { return l.hold == h })
	end := a.levels[i].end
	if reason := a.reason; a.phase == over {
		if a.unlocked++; a.unlocked == len(a.levels) {
			lostAcquisitions.Remove(a.session.Key(), a)
		}
		a.mu.Unlock()
		end(reason) // endLevels may not have reached this level yet
		return reason
	}
	a.levels = slices.Delete(a.levels, i, i+1)
	if len(a.levels) > 0 {
		a.setRenew(before)
		a.mu.Unlock()
		end(rlock.ErrReleased)
		return nil
	}
	a.deadline = a.trustedUntil()
	a.phase, a.reason = over, rlock.ErrReleased
	r, overdue := a.startRelease() // with mu held: nothing else may end a part before
	a.mu.Unlock()
	end(rlock.ErrReleased)
	detach(a.session, a)
	for _, p := range overdue {
		a.sendRelease(p.node, p.owner)
	}
	return r.run()
}

// release is the release of an acquisition that is over, by its last Unlock. Its fields are guarded
// by the acquisition's mutex.
type release struct {
	acquisition *acquisition
	parts       []nodeRelease // never grows, because jobs point into it
	abandoned   bool          // nobody waits any more: the cleaner retries what fails
}

// nodeRelease is the release of one part. It must not be copied, because a pool may run its job.
type nodeRelease struct {
	release     *release
	call        wait.Job // the first try
	node        int
	owner       string
	late        bool           // its request is under way; request.Run releases it
	hold        hooks.NodeHold // to be dropped; nil once it was
	state       releaseState
	err         error // of the last try
	unconfirmed bool  // a try without a reply may have released the part
}

// releaseState is the state of a nodeRelease.
type releaseState uint8

const (
	unsent releaseState = iota // not sent, or to be sent again
	sent
	released
	gone    // it was not held, or never granted
	refused // permanently
)

// startRelease removes all parts of the acquisition. It withdraws the requests that were not sent,
// and returns the release of the other parts, and the parts whose reply is overdue. It is called
// with mu held.
func (a *acquisition) startRelease() (r *release, overdue []part) {
	r = &release{acquisition: a, parts: make([]nodeRelease, 0, len(a.parts))}
	a.release = r
	for i := range a.parts {
		p, hold := a.removePart(i)
		switch p.state {
		case granted:
			r.parts = append(r.parts, nodeRelease{release: r, node: i, owner: p.owner, hold: hold})
		case asked:
			if a.withdraw(p) {
				continue
			}
			late := nodeRelease{release: r, node: i, owner: p.owner, late: true, state: sent}
			r.parts = append(r.parts, late)
			if p.overdue() {
				overdue = append(overdue, p)
			}
		case missing:
		}
	}
	return r, overdue
}

// lateReply notes the outcome of a request that was still under way when the acquisition was over.
// wasHeld says that the part had been acquired, and has been released.
func (a *acquisition) lateReply(i int, wasHeld bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.release == nil {
		return
	}
	for j := range a.release.parts {
		if n := &a.release.parts[j]; n.node == i && n.late {
			n.state = gone
			if wasHeld {
				n.state = released
			}
		}
	}
	a.notify()
}

// count returns the number of parts in any of the states. It is called with mu held.
func (r *release) count(states ...releaseState) int {
	n := 0
	for i := range r.parts {
		if slices.Contains(states, r.parts[i].state) {
			n++
		}
	}
	return n
}

// covers reports whether there was a part on node i.
func (r *release) covers(i int) bool {
	for j := range r.parts {
		if r.parts[j].node == i {
			return true
		}
	}
	return false
}

// conclusive reports whether more replies make no difference. It is called with mu held.
func (r *release) conclusive() bool {
	quorum := r.acquisition.lock.quorum
	return r.count(released) >= quorum || r.count(released, sent, unsent) < quorum
}

// resendAfter is how long to wait for other replies before a failed release is sent again.
const resendAfter = 50 * time.Millisecond

// run sends the releases, and retries those that fail. It blocks until it is known whether a quorum
// held the lock until now, for at most the CommandTimeout of the first node's client.
func (r *release) run() error {
	a := r.acquisition
	b := wait.NewBudget(context.Background(), nil, a.lock.nodes[0].CommandTimeout())
	defer b.Stop()
	a.mu.Lock()
	a.decided = func() bool { return r.conclusive() || r.count(sent) == 0 }
	a.notify()
	a.mu.Unlock()
	var delay wait.Backoff
	for {
		start := time.Now()
		a.mu.Lock()
		for i := range r.parts {
			if r.parts[i].state == unsent {
				r.send(&r.parts[i])
			}
		}
		a.mu.Unlock()
		r.dropHolds()
		a.waitDecided(b, resendAfter)
		a.mu.Lock()
		over, retry := r.conclusive() || b.Over(), r.count(unsent) > 0
		a.mu.Unlock()
		if over || retry && !b.Sleep(roundBackoff(&delay, time.Since(start)), nil, nil) {
			return r.outcome()
		}
	}
}

// dropHolds removes the parts from the watchdogs. It runs after the releases were sent, which need
// not wait for it. A renewal that arrives after the release extends nothing, because it finds
// another owner or none.
func (r *release) dropHolds() {
	for i := range r.parts {
		dropHold(r.parts[i].hold)
		r.parts[i].hold = nil
	}
}

// send sends the release of a part, unless its node is stalled or closed. It is called with mu
// held.
func (r *release) send(n *nodeRelease) {
	a, node := r.acquisition, r.acquisition.lock.nodes[n.node]
	if err := unavailable(node); err != nil {
		n.err = err
		if errors.Is(err, rlock.ErrClosed) {
			// The node gets no more requests. A closing client may still clean up; otherwise the
			// part ends with its lease.
			n.state = refused
			node.CleanUp(n.owner, time.Now().Add(a.longest))
		}
		return
	}
	call := &n.call
	if call.Task != nil {
		call = new(wait.Job)
	}
	call.Task, call.Timeout = n, a.lock.nodeTimeout(node, a.longest)
	n.state = sent
	if !node.Pool().Do(call) {
		n.state, n.err = refused, rlock.ErrClosed // the part ends with its lease
	}
}

// Run asks the node to release the part, and blocks until the node replies.
func (n *nodeRelease) Run() {
	a, node := n.release.acquisition, n.release.acquisition.lock.nodes[n.node]
	reply, err := node.Release(n.owner)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil && !reply.Held && !n.unconfirmed:
		n.state = gone
	case err == nil:
		n.state = released // possibly by an earlier try without a reply
	case node.Permanent(err):
		n.state, n.err = refused, err
	default:
		n.state, n.err = unsent, err
		n.unconfirmed = n.unconfirmed || lua.ClassOf(err) == lua.Unknown
		if n.release.abandoned {
			node.CleanUp(n.owner, time.Now().Add(a.longest))
		}
	}
	a.notify()
}

// outcome leaves the remaining releases to the background. It returns nil if a quorum has released
// the lock, an [rlock.LostError] if no quorum held it any more, and else an unknown outcome.
func (r *release) outcome() error {
	a := r.acquisition
	a.mu.Lock()
	defer a.mu.Unlock()
	r.abandoned = true
	quorum := a.lock.quorum
	for i := range r.parts {
		if n := &r.parts[i]; n.state == unsent {
			a.lock.nodes[n.node].CleanUp(n.owner, time.Now().Add(a.longest))
		}
	}
	if r.count(released) >= quorum {
		return nil
	}
	e := &QuorumError{
		Lock:    a.lock.name,
		Want:    quorum,
		Granted: r.count(released),
		did:     "released",
		cause:   rlock.ErrOutcomeUnknown,
	}
	for i := range r.parts {
		n, err := &r.parts[i], r.parts[i].err
		switch n.state {
		case released:
			continue
		case gone:
			err = watchdog.ErrGone
		case sent:
			err = errNoAnswer
		case unsent, refused:
		}
		e.Nodes = append(e.Nodes, NodeError{Server: a.lock.serverName(n.node), Err: err})
	}
	for i := range a.parts {
		if !r.covers(i) {
			e.Nodes = append(e.Nodes, NodeError{Server: a.lock.serverName(i), Err: errNoPart})
		}
	}
	if len(r.parts)-r.count(gone) < quorum {
		lost := &rlock.LostError{
			Lock: a.lock.name,
			Reason: &lossError{
				held:  len(r.parts) - r.count(gone),
				want:  quorum,
				nodes: e.Nodes,
				last:  watchdog.ErrGone,
			},
		}
		a.lock.nodes[0].Warn(lost.Error(), "lock", a.lock.name, "owner", a.owner)
		return lost
	}
	return e
}
