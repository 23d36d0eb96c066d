package redlock

import (
	"errors"
	"fmt"
	"time"

	"holdfast/internal/hooks"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// request is a question to a node, and what the node has given.
type request struct {
	call        wait.Job
	acquisition *acquisition
	node        int
	owner       string // who was asked for
	lease       time.Duration

	// What follows is guarded by the acquisition's mutex.
	hold     hooks.NodeHold // watches over what was given; nil until that has begun
	deadline time.Time      // until when it can be trusted, while hold is nil
	lasts    time.Duration  // the longest lease that the node was asked for since, while hold is nil
}

var (
	_ hooks.Part = (*request)(nil)
	_ wait.Task  = (*request)(nil)
)

// Run asks the node. It may take as long as the node likes, and nobody may be left who wants to
// know.
func (q *request) Run() {
	a, node := q.acquisition, q.acquisition.lock.nodes[q.node]
	a.mu.Lock()
	wanted := a.phase != over
	a.mu.Unlock()
	if !wanted {
		a.lateReply(q.node, false)
		return
	}
	sent := time.Now()
	vote, err := node.Acquire(q.owner, q.lease, a.lock.options.delay())
	deadline := watchdog.Deadline(sent, q.lease)
	taken := err == nil && vote.Granted || err != nil && lua.ClassOf(err) == lua.Unknown
	if vote.Again {
		// Nobody was asked in this name before, but other nodes: what is taken there must not count
		// twice.
		vote, err, taken = lua.Vote{}, errSameServer, false
	}
	if err == nil && vote.Granted && !time.Now().Before(deadline) {
		err = fmt.Errorf("granted, but the answer took longer than the lease of %v", q.lease)
	}

	a.mu.Lock()
	// A part that comes too late must not revive what could not be trusted in between.
	a.expire()
	p := &a.parts[q.node]
	gone := a.phase == over
	if !gone {
		p.state, p.vote, p.err = missing, vote, err
		if err == nil && vote.Granted {
			p.state, p.request, q.deadline = granted, q, deadline
		}
		a.notify()
	}
	a.mu.Unlock()

	switch {
	case gone:
		a.lateReply(q.node, taken && a.releaseNode(q.node, q.owner))
	case !taken:
	case err != nil:
		// It may have been taken in this name, which is never used again.
		node.CleanUp(q.owner, time.Now().Add(q.lease))
	default:
		q.watch(deadline)
		q.rejoin()
	}
}

// watch begins to watch over what was given. Whoever waits for the quorum need not wait for this;
// and may have released everything meanwhile.
func (q *request) watch(deadline time.Time) {
	a := q.acquisition
	a.mu.Lock()
	mine := a.parts[q.node].request == q
	a.mu.Unlock()
	if !mine {
		return
	}
	hold := a.lock.nodes[q.node].Hold(q.owner, a.token, deadline, false, q)
	if hold == nil {
		q.Ended(rlock.ErrClosed)
		return
	}
	a.mu.Lock()
	mine = a.parts[q.node].request == q
	if mine {
		hold.MayLast(q.lasts)
		hold.Extend(q.deadline)
		q.hold = hold
		if a.phase == held && a.renews() {
			hold.SetRenew(true)
		}
	}
	a.mu.Unlock()
	if !mine {
		hold.Drop()
	}
}

// rejoin does for a part that comes late what a extension did meanwhile, which passed it over.
func (q *request) rejoin() {
	a := q.acquisition
	a.mu.Lock()
	defer a.mu.Unlock()
	more := time.Until(a.extendedTo).Truncate(time.Millisecond)
	if a.phase != held || a.parts[q.node].request != q || more <= 0 {
		return
	}
	if q.trustedUntil().Before(a.extendedTo.Add(-watchdog.Drift(more))) {
		_ = a.extendPart(
			q.node,
			q,
			q.owner,
			len(a.levels),
			more,
			&extension{kept: make([]bool, len(a.parts))},
		)
	}
}

// Ended is told that the part is lost on its node, or that the node's client is closed; or what we
// know, that we let it go.
func (q *request) Ended(reason error) {
	a := q.acquisition
	a.mu.Lock()
	p := &a.parts[q.node]
	if p.request != q {
		a.mu.Unlock() // not any more
		return
	}
	var lost *rlock.LostError
	if errors.As(reason, &lost) {
		reason = lost.Reason // it is not the lock that is lost
	}
	deadline := a.trustedUntil()
	p.state, p.request, p.err = missing, nil, reason
	a.notify()
	// When parts end at the same time their watchdogs may tell of the last one first.
	if a.phase != held || a.count(granted) >= a.lock.quorum && time.Now().Before(deadline) {
		undecided := a.phase == asking
		a.mu.Unlock()
		if undecided && errors.Is(reason, rlock.ErrClosed) {
			// Close leaves alone what is held, and this is not. Later, when the attempt has failed,
			// it could not be released.
			a.sendRelease(q.node, q.owner)
		}
		return
	}
	a.deadline = deadline
	if now := time.Now(); now.Before(deadline) {
		a.deadline = now
	}
	a.lose(reason)
}

// lost is told by the node that it does not hold the part any more.
func (q *request) lost() {
	q.acquisition.mu.Lock()
	hold := q.hold
	q.acquisition.mu.Unlock()
	q.Ended(watchdog.ErrGone)
	dropHold(hold)
}

// Renewed is told that a part was renewed, which is the time to ask the nodes that are missing.
func (q *request) Renewed() {
	a := q.acquisition
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase != held || !a.renews() {
		return
	}
	for i, node := range a.lock.nodes {
		p := &a.parts[i]
		// All parts of a renewal tell of it; a node need not hear the question of each.
		if p.state == missing && time.Since(p.asked) > node.WatchdogLease()/6 {
			a.ask(i, node.NewOwner(), node.WatchdogLease())
		}
	}
}

// trusted is until when the part can be.
func (q *request) trustedUntil() time.Time {
	if q.hold != nil {
		return q.hold.Deadline()
	}
	return q.deadline
}

// mayLast notes that the node may be asked to keep it for lease, before it is.
func (q *request) mayLast(lease time.Duration) {
	q.lasts = max(q.lasts, lease)
	if q.hold != nil {
		q.hold.MayLast(lease)
	}
}

// extend notes that the node keeps it until deadline.
func (q *request) setDeadline(deadline time.Time) {
	switch {
	case q.hold != nil:
		q.hold.Extend(deadline)
	case deadline.After(q.deadline):
		q.deadline = deadline
	}
}
