package redlock

import (
	"errors"
	"time"

	"holdfast/internal/hooks"
	"holdfast/internal/wait"
	"holdfast/watchdog"
)

// giveUp releases on all nodes what is, or may be, taken there. The acquisition is over, so no part
// changes any more but by this.
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
				a.sendRelease(i, p.owner) // our margin is over, and not the lease there
			}
		}
	}
}

// take takes over the part of node i, and what watches over it, if that has begun. It is called
// with mu held.
func (a *acquisition) removePart(i int) (p part, hold hooks.NodeHold) {
	p = a.parts[i]
	a.parts[i].state, a.parts[i].request = missing, nil
	if p.request != nil {
		hold = p.request.hold
	}
	return p, hold
}

// letGo ends the watch over what is being released.
func dropHold(hold hooks.NodeHold) {
	if hold != nil {
		hold.Drop()
	}
}

// withdraw takes back a question that was not answered yet, and returns false if it has been sent.
// Then its answer will be seen to when it comes: what it took is released.
func (a *acquisition) withdraw(p part) bool { return a.lock.nodes[p.node].Pool().Withdraw(p.call) }

// silent tells that the node has not answered in time. It may carry out the question when its
// connection has long been given up, and nobody gets the answer: so it is sent the release right
// away as well, to be found beside the question.
func (p *part) overdue() bool { return time.Since(p.asked) >= p.call.Timeout }

// sendRelease releases node i's part in the background. A refusal is definite and is not released:
// the script that refuses has changed nothing.
func (a *acquisition) sendRelease(i int, ownerID string) {
	node := a.lock.nodes[i]
	a.mu.Lock()
	timeout := a.lock.nodeTimeout(node, a.longest)
	a.mu.Unlock()
	// When the client is closed the lease ends it.
	node.Pool().Do(&wait.Job{Timeout: timeout, Task: wait.Func(func() { _ = a.releaseNode(i, ownerID) })})
}

// release releases node i's part, and tells whether it was held. It may take as long as the node
// likes.
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
