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
func (t *acquisition) giveUp() {
	for i := range t.parts {
		t.mu.Lock()
		p, hold := t.take(i)
		t.mu.Unlock()
		switch p.state {
		case granted:
			t.sendRelease(i, p.owner)
			letGo(hold)
		case asked:
			if !t.withdraw(p) && p.silent() {
				t.sendRelease(i, p.owner)
			}
		case missing:
			if errors.Is(p.err, watchdog.ErrExpired) {
				t.sendRelease(i, p.owner) // our margin is over, and not the lease there
			}
		}
	}
}

// take takes over the part of node i, and what watches over it, if that has begun. It is called
// with mu held.
func (t *acquisition) take(i int) (p part, hold hooks.NodeHold) {
	p = t.parts[i]
	t.parts[i].state, t.parts[i].request = missing, nil
	if p.request != nil {
		hold = p.request.hold
	}
	return p, hold
}

// letGo ends the watch over what is being released.
func letGo(hold hooks.NodeHold) {
	if hold != nil {
		hold.Drop()
	}
}

// withdraw takes back a question that was not answered yet, and returns false if it has been sent.
// Then its answer will be seen to when it comes: what it took is released.
func (t *acquisition) withdraw(p part) bool { return t.lock.nodes[p.node].Pool().Withdraw(p.call) }

// silent tells that the node has not answered in time. It may carry out the question when its
// connection has long been given up, and nobody gets the answer: so it is sent the release right
// away as well, to be found beside the question.
func (p *part) silent() bool { return time.Since(p.asked) >= p.call.Timeout }

// sendRelease releases node i's part in the background. A refusal is definite and is not released:
// the script that refuses has changed nothing.
func (t *acquisition) sendRelease(i int, as string) {
	node := t.lock.nodes[i]
	t.mu.Lock()
	timeout := t.lock.nodeTimeout(node, t.longest)
	t.mu.Unlock()
	// When the client is closed the lease ends it.
	node.Pool().Do(&wait.Job{Timeout: timeout, Task: wait.Func(func() { _ = t.release(i, as) })})
}

// release releases node i's part, and tells whether it was held. It may take as long as the node
// likes.
func (t *acquisition) release(i int, as string) (held bool) {
	node := t.lock.nodes[i]
	reply, err := node.Release(as)
	if err != nil && !node.Permanent(err) {
		t.mu.Lock()
		longest := t.longest
		t.mu.Unlock()
		node.CleanUp(as, time.Now().Add(longest))
	}
	return err == nil && reply.Held
}
