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

// request asks a node for a part, and then stands for the part that the node has granted.
type request struct {
	call        wait.Job
	acquisition *acquisition
	node        int
	owner       string // on the node
	lease       time.Duration

	// The fields below are guarded by the acquisition's mutex.
	hold     hooks.NodeHold // the part's hold in the watchdog; nil until watch has added it
	deadline time.Time      // until when the part can be trusted, while hold is nil
	lasts    time.Duration  // the longest lease requested in extensions, while hold is nil
}

var (
	_ hooks.Part = (*request)(nil)
	_ wait.Task  = (*request)(nil)
)

// Run asks the node, and handles the reply. It blocks until the node replies; the acquisition may
// be over by then.
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
		// Only other nodes were asked for this owner before. This node is one of their servers
		// under another name, and must not count twice.
		vote, err, taken = lua.Vote{}, errSameServer, false
	}
	if err == nil && vote.Granted && !time.Now().Before(deadline) {
		err = fmt.Errorf("granted, but the answer took longer than the lease of %v", q.lease)
	}

	a.mu.Lock()
	// A late part must not revive an acquisition that has expired in between.
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
		// The node may have granted it to this owner, which is never used again.
		node.CleanUp(q.owner, time.Now().Add(q.lease))
	default:
		q.watch(deadline)
		q.rejoin()
	}
}

// watch adds the part to the watchdog of its node's client. The caller of Lock does not wait for
// this, and may have released everything meanwhile.
func (q *request) watch(deadline time.Time) {
	a := q.acquisition
	a.mu.Lock()
	mine := a.parts[q.node].request == q
	a.mu.Unlock()
	if !mine {
		return
	}
	hold := a.lock.nodes[q.node].Hold(q.owner, a.token, deadline, q)
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

// rejoin extends a part that was granted after an extension, as the extension did with the others.
func (q *request) rejoin() {
	a := q.acquisition
	a.mu.Lock()
	defer a.mu.Unlock()
	more := time.Until(a.extendedTo).Truncate(time.Millisecond)
	if a.phase != held || a.parts[q.node].request != q || more <= 0 {
		return
	}
	if q.trustedUntil().Before(a.extendedTo.Add(-watchdog.Drift(more))) {
		ignored := extension{kept: make([]bool, len(a.parts))}
		_ = a.extendPart(q, len(a.levels), more, &ignored)
	}
}

// Ended handles the end of the part: it is lost on its node, the node's client is closed, or the
// part was dropped, which has no effect.
func (q *request) Ended(reason error) {
	a := q.acquisition
	a.mu.Lock()
	p := &a.parts[q.node]
	if p.request != q {
		a.mu.Unlock()
		return
	}
	var lost *rlock.LostError
	if errors.As(reason, &lost) {
		reason = lost.Reason // a part is lost, not the lock
	}
	deadline := a.trustedUntil()
	p.state, p.request, p.err = missing, nil, reason
	a.notify()
	// Parts may expire at the same time, and their watchdogs may report them in any order: the
	// deadline counts as well as the number of parts.
	if a.phase != held || a.count(granted) >= a.lock.quorum && time.Now().Before(deadline) {
		undecided := a.phase == asking
		a.mu.Unlock()
		if undecided && errors.Is(reason, rlock.ErrClosed) {
			// Close does not release what is held, but this part is not held yet. After the attempt
			// has failed, the closed client could not release it any more.
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

// lost ends the part because its node has replied that it does not hold it any more.
func (q *request) lost() {
	q.acquisition.mu.Lock()
	hold := q.hold
	q.acquisition.mu.Unlock()
	q.Ended(watchdog.ErrGone)
	dropHold(hold)
}

// Renewed handles the renewal of the part: it asks the nodes without a part to rejoin.
func (q *request) Renewed() {
	a := q.acquisition
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase != held || !a.renews() {
		return
	}
	for i, node := range a.lock.nodes {
		p := &a.parts[i]
		// Every part reports its renewal. Ask a missing node only once for all of them.
		if p.state == missing && time.Since(p.asked) > node.WatchdogLease()/6 {
			a.ask(i, node.NewOwner(), node.WatchdogLease())
		}
	}
}

// trustedUntil returns the time until which the part can be trusted. It is called with mu held.
func (q *request) trustedUntil() time.Time {
	if q.hold != nil {
		return q.hold.Deadline()
	}
	return q.deadline
}

// mayLast notes, before the node is asked, that it may keep the part for lease. It is called with
// mu held.
func (q *request) mayLast(lease time.Duration) {
	q.lasts = max(q.lasts, lease)
	if q.hold != nil {
		q.hold.MayLast(lease)
	}
}

// setDeadline notes that the node keeps the part until deadline. It is called with mu held.
func (q *request) setDeadline(deadline time.Time) {
	switch {
	case q.hold != nil:
		q.hold.Extend(deadline)
	case deadline.After(q.deadline):
		q.deadline = deadline
	}
}
