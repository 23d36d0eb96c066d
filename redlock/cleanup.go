package redlock

import (
	"errors"
	"time"

	"holdfast/internal/hooks"
	"holdfast/internal/wait"
	"holdfast/watchdog"
)

// releaseAll releases, in the background, what is or may be held on any node. The acquisition is
// over: nothing else changes its parts any more.
func (a *acquisition) releaseAll() {
	for i := range a.parts {
		a.mu.Lock()
		p, hold := a.removePart(i)
		a.mu.Unlock()
		switch p.state {
		case granted:
			a.sendRelease(i, p.owner)
			dropHold(hold)
		case asked:
			if !a.withdraw(p) && p.overdue() {
				a.sendRelease(i, p.owner)
			}
		case missing:
			if errors.Is(p.err, watchdog.ErrExpired) {
				a.sendRelease(i, p.owner) // the node's lease ends after ours, by the drift margin
			}
		}
	}
}

// removePart removes the part of node i. It returns the part and its watchdog hold, if there is one
// yet. It is called with mu held.
func (a *acquisition) removePart(i int) (p part, hold hooks.NodeHold) {
	p = a.parts[i]
	a.parts[i].state, a.parts[i].request = missing, nil
	if p.request != nil {
		hold = p.request.hold
	}
	return p, hold
}

// dropHold removes a part from the watchdog. hold may be nil.
func dropHold(hold hooks.NodeHold) {
	if hold != nil {
		hold.Drop()
	}
}

// withdraw withdraws a request. It returns false if the request has been sent: then request.Run
// releases what it acquires.
func (a *acquisition) withdraw(p part) bool { return a.lock.nodes[p.node].Pool().Withdraw(p.call) }

// overdue reports whether the node has not replied to the request in time. Such a node is sent the
// release at once: it may carry out the request after its connection was closed, and then nobody
// gets the reply.
func (p *part) overdue() bool { return time.Since(p.asked) >= p.call.Timeout }

// sendRelease releases the part of node i in the background. It is called without mu. Parts that
// were refused need no release: a script that refuses changes nothing.
func (a *acquisition) sendRelease(i int, ownerID string) {
	node := a.lock.nodes[i]
	a.mu.Lock()
	timeout := a.lock.nodeTimeout(node, a.longest)
	a.mu.Unlock()
	// If the client is closed, the part ends with its lease.
	task := wait.Func(func() { _ = a.releaseNode(i, ownerID) })
	node.Pool().Do(&wait.Job{Timeout: timeout, Task: task})
}

// releaseNode releases the part of node i, and reports whether it was held. It blocks until the
// node replies. If it fails, the cleaner of the node's client retries.
func (a *acquisition) releaseNode(i int, ownerID string) (held bool) {
	node := a.lock.nodes[i]
	reply, err := node.Release(ownerID)
	if err != nil && !node.Permanent(err) {
		a.mu.Lock()
		longest := a.longest
		a.mu.Unlock()
		node.CleanUp(ownerID, time.Now().Add(longest))
	}
	return err == nil && reply.Held
}
