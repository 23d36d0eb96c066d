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
func (t *acquisition) Release(h *rlock.Hold) error {
	t.mu.Lock()
	t.expire()
	before := t.renews()
	at := slices.IndexFunc(t.levels, func(l level) bool { return l.hold == h })
	end := t.levels[at].end
	if reason := t.ended; t.phase == over {
		if t.unlocked++; t.unlocked == len(t.levels) {
			lostAcquisitions.Remove(t.session.Key(), t)
		}
		t.mu.Unlock()
		end(reason) // whoever has ended the acquisition may not have come to this level yet
		return reason
	}
	t.levels = slices.Delete(t.levels, at, at+1)
	if len(t.levels) > 0 {
		t.setRenew(before)
		t.mu.Unlock()
		end(rlock.ErrReleased)
		return nil
	}
	t.deadline = t.trusted()
	t.phase, t.ended = over, rlock.ErrReleased
	d, silent := t.depart() // before anybody else can end a part
	t.mu.Unlock()
	end(rlock.ErrReleased)
	drop(t.session, t)
	for _, p := range silent {
		t.sendRelease(p.node, p.owner)
	}
	return d.run()
}

// releasing is the release of an acquisition that is over. Its fields are guarded by the
// acquisition's mutex.
type releasing struct {
	acquisition *acquisition
	parts       []partRelease
	abandoned   bool // nobody waits any more: what fails is left to the background
}

// partRelease is the release of one part. It must not be copied, because a pool may run its job.
type partRelease struct {
	of    *releasing
	call  wait.Job // the first try
	node  int
	owner string
	late  bool           // the question for it was still under way; its answer sees to the release
	hold  hooks.NodeHold // to be let go; nil if it was
	state releaseState
	err   error // of the last try
	doubt bool  // a try whose answer did not come may have released it
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
func (t *acquisition) depart() (d *releasing, silent []part) {
	d = &releasing{
		acquisition: t,
		parts:       make([]partRelease, 0, len(t.parts)),
	} // it does not grow: the calls point into it
	t.leaving = d
	for i := range t.parts {
		p, hold := t.take(i)
		switch p.state {
		case granted:
			d.parts = append(d.parts, partRelease{of: d, node: i, owner: p.owner, hold: hold})
		case asked:
			if t.withdraw(p) {
				continue
			}
			d.parts = append(
				d.parts,
				partRelease{of: d, node: i, owner: p.owner, late: true, state: sent},
			)
			if p.silent() {
				silent = append(silent, p)
			}
		case missing:
		}
	}
	return d, silent
}

// left is told what became of a part whose question was still under way when the acquisition was
// over.
func (t *acquisition) left(i int, wasHeld bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leaving == nil {
		return
	}
	for j := range t.leaving.parts {
		if l := &t.leaving.parts[j]; l.node == i && l.late {
			l.state = gone
			if wasHeld {
				l.state = released
			}
		}
	}
	t.tell()
}

// in counts the parts in any of the states. It is called with mu held.
func (d *releasing) in(states ...releaseState) int {
	n := 0
	for i := range d.parts {
		if slices.Contains(states, d.parts[i].state) {
			n++
		}
	}
	return n
}

// has tells whether there was a part on node i.
func (d *releasing) has(i int) bool {
	for j := range d.parts {
		if d.parts[j].node == i {
			return true
		}
	}
	return false
}

// known tells whether more answers make no difference. It is called with mu held.
func (d *releasing) known() bool {
	quorum := d.acquisition.lock.quorum
	return d.in(released) >= quorum || d.in(released, sent, unsent) < quorum
}

// resendAfter is how long other answers are awaited before a failed release is sent again.
const resendAfter = 50 * time.Millisecond

// run sends the releases, and those that fail again, until it is known whether a quorum held the
// lock until it was released, or the time for that is over.
func (d *releasing) run() error {
	t := d.acquisition
	b := wait.NewBudget(context.Background(), nil, t.lock.nodes[0].CommandTimeout())
	defer b.Stop()
	t.mu.Lock()
	t.decided = func() bool { return d.known() || d.in(sent) == 0 }
	t.tell()
	t.mu.Unlock()
	var delay wait.Backoff
	for {
		start := time.Now()
		t.mu.Lock()
		for i := range d.parts {
			if d.parts[i].state == unsent {
				d.send(&d.parts[i])
			}
		}
		t.mu.Unlock()
		d.letGo()
		t.await(b, resendAfter)
		t.mu.Lock()
		over, again := d.known() || b.Over(), d.in(unsent) > 0
		t.mu.Unlock()
		if over || again && !b.Sleep(roundBackoff(&delay, time.Since(start)), nil, nil) {
			return d.outcome()
		}
	}
}

// letGo ends the watch over the parts. That is after the releases were sent, so that nobody waits
// for it: a renewal that overtakes one keeps nothing, because it finds another owner or none.
func (d *releasing) letGo() {
	for i := range d.parts {
		letGo(d.parts[i].hold)
		d.parts[i].hold = nil
	}
}

// send sends the release of a part, if its node answers at present. It is called with mu held.
func (d *releasing) send(l *partRelease) {
	t, node := d.acquisition, d.acquisition.lock.nodes[l.node]
	if err := available(node); err != nil {
		l.err = err
		if errors.Is(err, rlock.ErrClosed) {
			// It will not answer again. What its client still does before it is closed may release
			// it; else its lease ends it.
			l.state = refused
			node.CleanUp(l.owner, time.Now().Add(t.longest))
		}
		return
	}
	call := &l.call
	if call.Task != nil {
		call = new(wait.Job)
	}
	call.Task, call.Timeout = l, t.lock.nodeTimeout(node, t.longest)
	l.state = sent
	if !node.Pool().Do(call) {
		l.state, l.err = refused, rlock.ErrClosed // its lease ends it
	}
}

// Run asks the node to release the part. It may take as long as the node likes.
func (r *partRelease) Run() {
	t, node := r.of.acquisition, r.of.acquisition.lock.nodes[r.node]
	answer, err := node.Release(r.owner)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil && !answer.Held && !r.doubt:
		r.state = gone
	case err == nil:
		r.state = released // perhaps by a try whose answer did not come
	case node.Permanent(err):
		r.state, r.err = refused, err
	default:
		r.state, r.err = unsent, err
		r.doubt = r.doubt || lua.ClassOf(err) == lua.Unknown
		if r.of.abandoned {
			node.CleanUp(r.owner, time.Now().Add(t.longest))
		}
	}
	t.tell()
}

// outcome leaves the rest to the background, and says what is known.
func (d *releasing) outcome() error {
	t := d.acquisition
	t.mu.Lock()
	defer t.mu.Unlock()
	d.abandoned = true
	quorum := t.lock.quorum
	for i := range d.parts {
		if l := &d.parts[i]; l.state == unsent {
			t.lock.nodes[l.node].CleanUp(l.owner, time.Now().Add(t.longest))
		}
	}
	if d.in(released) >= quorum {
		return nil
	}
	e := &QuorumError{
		Lock:    t.lock.name,
		Want:    quorum,
		Granted: d.in(released),
		did:     "released",
		cause:   rlock.ErrOutcomeUnknown,
	}
	for i := range d.parts {
		l, err := &d.parts[i], d.parts[i].err
		switch l.state {
		case released:
			continue
		case gone:
			err = watchdog.ErrGone
		case sent:
			err = errNoAnswer
		case unsent, refused:
		}
		e.Nodes = append(e.Nodes, NodeError{Server: t.lock.called(l.node), Err: err})
	}
	for i := range t.parts {
		if !d.has(i) {
			e.Nodes = append(e.Nodes, NodeError{Server: t.lock.called(i), Err: errNoPart})
		}
	}
	if len(d.parts)-d.in(gone) < quorum {
		lost := &rlock.LostError{
			Lock: t.lock.name,
			Reason: &lossError{
				held:  len(d.parts) - d.in(gone),
				want:  quorum,
				nodes: e.Nodes,
				last:  watchdog.ErrGone,
			},
		}
		t.lock.nodes[0].Warn(lost.Error(), "lock", t.lock.name, "owner", t.owner)
		return lost
	}
	return e
}
