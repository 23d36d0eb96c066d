package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/crew"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Extend makes the nodes keep the lock for lease from now at least.
func (t *tenure) Extend(ctx context.Context, lease time.Duration) error {
	lease, err := t.lock.options.usable(lease)
	if err != nil {
		return err
	}
	p := newPatience(ctx, t.lock.nodes[0].CommandTimeout())
	defer p.stop()
	if !t.seat.claim(p) {
		return fmt.Errorf("%w: another call of the same owner is still waiting for the nodes", p.because(rlock.ErrOutcomeUnknown))
	}
	defer t.seat.pass()
	t.mu.Lock()
	levels := len(t.levels)
	t.mu.Unlock()
	err = t.lengthen(p, levels, lease, true)
	if errors.Is(err, rlock.ErrReleased) {
		return fmt.Errorf("%w: this hold was released before", rlock.ErrNotHeld)
	}
	return err
}

// lengthening is the count of what the nodes answer to the question to keep a tenure for longer. It is guarded by the
// tenure's mutex.
type lengthening struct{ pending, held int }

// lengthen makes a quorum of the nodes keep the lock, with as many levels, for lease from now. A node that says that it is
// not held there is a part lost. It is called by who has the seat's turn.
func (t *tenure) lengthen(p *patience, levels int, lease time.Duration, again bool) error {
	var delay backoff
	for {
		start := time.Now()
		var count lengthening
		t.mu.Lock()
		if t.phase == over {
			defer t.mu.Unlock()
			return t.ended
		}
		t.longest = max(t.longest, lease)
		quorum := t.lock.quorum
		t.decided = func() bool {
			return t.phase == over || count.held >= quorum || count.held+count.pending < quorum
		}
		for i := range t.parts {
			if part := &t.parts[i]; part.state == granted {
				part.err = t.keep(i, part.grant, part.owner, levels, lease, &count)
			}
		}
		t.mu.Unlock()
		t.await(p, t.lock.options.nodeTimeout(lease))

		t.mu.Lock()
		switch {
		case count.held >= quorum:
			t.mu.Unlock()
			return nil
		case t.phase == over:
			defer t.mu.Unlock()
			return t.ended
		}
		failure := t.unconfirmed(count.held)
		hopeless := t.hopeless()
		t.mu.Unlock()
		if hopeless || !again || !p.sleep(delay.next(time.Since(start))) {
			failure.cause = p.because(rlock.ErrOutcomeUnknown)
			return failure
		}
	}
}

// keep asks node i. It is called with mu held, and returns why it did not.
func (t *tenure) keep(i int, g *grant, as string, levels int, lease time.Duration, count *lengthening) error {
	node := t.lock.nodes[i]
	if err := available(node); err != nil {
		return err
	}
	g.hold.MayLast(lease)
	call := &crew.Call{Patience: t.lock.options.nodeTimeout(lease), Run: func() {
		sent := time.Now()
		yes, err := node.Reenter(as, levels, lease)
		if yes {
			g.hold.Extend(watchdog.Deadline(sent, lease))
		}
		if err == nil && !yes {
			g.hold.LetGo()
			t.partEnded(i, g, watchdog.ErrGone)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		count.pending--
		switch {
		case yes:
			count.held++
		case err != nil && t.parts[i].grant == g:
			t.parts[i].err = err
		}
		t.tell()
	}}
	if !node.Crew().Do(call) {
		return rlock.ErrClosed
	}
	count.pending++
	return nil
}

// unconfirmed is the error when too few nodes have said in time that they keep the lock. It is called with mu held.
func (t *tenure) unconfirmed(held int) *QuorumError {
	e := &QuorumError{Lock: t.lock.name, Want: t.lock.quorum, Granted: held}
	for i := range t.parts {
		part := &t.parts[i]
		err := part.err
		if err == nil && part.state == granted {
			continue
		}
		if err == nil {
			err = errNoPart
		}
		e.Nodes = append(e.Nodes, NodeError{Server: t.lock.called(i), Err: err})
	}
	return e
}
