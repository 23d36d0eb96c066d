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

// Release gives back a level, and with the last one the lock. It returns when a quorum of nodes has
// released it: then somebody else can have it. The others are released in the background.
func (a *acquisition) Release(h *rlock.Hold) error {
	a.mu.Lock()
	a.expire()
	before := a.renews()
	at := slices.IndexFunc(a.levels, func(l level) bool { return l.hold == h })
	end := a.levels[at].end
	if reason := a.reason; a.phase == over {
		if a.unlocked++; a.unlocked == len(a.levels) {
			lostAcquisitions.Remove(a.session.Key(), a)
		}
		a.mu.Unlock()
		end(reason) // whoever has ended the acquisition may not have come to this level yet
		return reason
	}
	a.levels = slices.Delete(a.levels, at, at+1)
	if len(a.levels) > 0 {
		a.setRenew(before)
		a.mu.Unlock()
		end(rlock.ErrReleased)
		return nil
	}
	a.deadline = a.trustedUntil()
	a.phase, a.reason = over, rlock.ErrReleased
	r, overdue := a.startRelease() // before anybody else can end a part
	a.mu.Unlock()
	end(rlock.ErrReleased)
	detach(a.session, a)
	for _, p := range overdue {
		a.sendRelease(p.node, p.owner)
	}
	return r.run()
}

// releasing is the release of an acquisition that is over. Its fields are guarded by the
// acquisition's mutex.
type release struct {
	acquisition *acquisition
	parts       []nodeRelease
	abandoned   bool // nobody waits any more: what fails is left to the background
}

// partRelease is the release of one part. It must not be copied, because a pool may run its job.
type nodeRelease struct {
	release     *release
	call        wait.Job // the first try
	node        int
	owner       string
	late        bool           // the question for it was still under way; its answer sees to the release
	hold        hooks.NodeHold // to be let go; nil if it was
	state       releaseState
	err         error // of the last try
	unconfirmed bool  // a try whose answer did not come may have released it
}

type releaseState uint8

const (
	unsent releaseState = iota // or to be sent again
	sent
	released
	gone    // it was not held, or never granted
	refused // for good
)

// depart takes over what is granted, and takes back what is still asked for.
func (a *acquisition) startRelease() (r *release, overdue []part) {
	r = &release{
		acquisition: a,
		parts:       make([]nodeRelease, 0, len(a.parts)),
	} // it does not grow: the calls point into it
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
			r.parts = append(
				r.parts,
				nodeRelease{release: r, node: i, owner: p.owner, late: true, state: sent},
			)
			if p.overdue() {
				overdue = append(overdue, p)
			}
		case missing:
		}
	}
	return r, overdue
}

// left is told what became of a part whose question was still under way when the acquisition was
// over.
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

// in counts the parts in any of the states. It is called with mu held.
func (r *release) count(states ...releaseState) int {
	n := 0
	for i := range r.parts {
		if slices.Contains(states, r.parts[i].state) {
			n++
		}
	}
	return n
}

// has tells whether there was a part on node i.
func (r *release) covers(i int) bool {
	for j := range r.parts {
		if r.parts[j].node == i {
			return true
		}
	}
	return false
}

// known tells whether more answers make no difference. It is called with mu held.
func (r *release) conclusive() bool {
	quorum := r.acquisition.lock.quorum
	return r.count(released) >= quorum || r.count(released, sent, unsent) < quorum
}

// resendAfter is how long other answers are awaited before a failed release is sent again.
const resendAfter = 50 * time.Millisecond

// run sends the releases, and those that fail again, until it is known whether a quorum held the
// lock until it was released, or the time for that is over.
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

// letGo ends the watch over the parts. That is after the releases were sent, so that nobody waits
// for it: a renewal that overtakes one keeps nothing, because it finds another owner or none.
func (r *release) dropHolds() {
	for i := range r.parts {
		dropHold(r.parts[i].hold)
		r.parts[i].hold = nil
	}
}

// send sends the release of a part, if its node answers at present. It is called with mu held.
func (r *release) send(n *nodeRelease) {
	a, node := r.acquisition, r.acquisition.lock.nodes[n.node]
	if err := unavailable(node); err != nil {
		n.err = err
		if errors.Is(err, rlock.ErrClosed) {
			// It will not answer again. What its client still does before it is closed may release
			// it; else its lease ends it.
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
		n.state, n.err = refused, rlock.ErrClosed // its lease ends it
	}
}

// Run asks the node to release the part. It may take as long as the node likes.
func (n *nodeRelease) Run() {
	a, node := n.release.acquisition, n.release.acquisition.lock.nodes[n.node]
	answer, err := node.Release(n.owner)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil && !answer.Held && !n.unconfirmed:
		n.state = gone
	case err == nil:
		n.state = released // perhaps by a try whose answer did not come
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

// outcome leaves the rest to the background, and says what is known.
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
