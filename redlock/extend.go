package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/wait"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Extend makes the nodes keep the lock for lease from now at least.
func (t *acquisition) Extend(ctx context.Context, lease time.Duration) error {
	if lease == rlock.Watchdog {
		lease = t.lock.nodes[0].WatchdogLease()
	}
	lease, err := t.lock.options.usable(lease)
	if err != nil {
		return err
	}
	p := wait.NewBudget(ctx, nil, t.lock.nodes[0].CommandTimeout())
	defer p.Stop()
	if err := p.Err(); err != nil {
		return err
	}
	if !t.session.Lock(p) {
		return fmt.Errorf(
			"%w: another call of the same owner is still waiting for the nodes",
			p.Because(rlock.ErrOutcomeUnknown),
		)
	}
	defer t.session.Unlock()
	err = t.prolong(p, 0, lease, true)
	if errors.Is(err, rlock.ErrReleased) {
		return fmt.Errorf("%w: this hold was released before", rlock.ErrNotHeld)
	}
	return err
}

// extension is the count of what the nodes answer to the question to keep an acquisition for
// longer. It is guarded by the acquisition's mutex.
type extension struct {
	pending, held int
	kept          []bool          // by node
	timeouts      []time.Duration // of those that were asked
}

// prolong makes a quorum of the nodes keep the lock for lease from now: with the given levels, or
// with 0 as many as it has. A node that says it does not hold the lock is a part lost. It is called
// with the session claimed.
func (t *acquisition) prolong(p *wait.Budget, levels int, lease time.Duration, again bool) error {
	var (
		delay   wait.Backoff
		failure *QuorumError
	)
	for {
		start := time.Now()
		count := extension{kept: make([]bool, len(t.lock.nodes))}
		t.mu.Lock()
		t.expire()
		if t.phase == over {
			t.mu.Unlock()
			return t.conclude()
		}
		t.longest = max(t.longest, lease)
		if until := start.Add(lease); until.After(t.asFarAs) {
			t.asFarAs = until
		}
		quorum := t.lock.quorum
		t.decided = func() bool {
			return t.phase == over || count.held >= quorum || count.pending == 0
		}
		for i := range t.parts {
			if part := &t.parts[i]; part.state == granted {
				part.err = t.keep(i, part.request, part.owner, levels, lease, &count)
			}
		}
		limit := lasting(count.timeouts, min(quorum, len(count.timeouts)))
		t.mu.Unlock()
		t.await(p, limit)

		t.mu.Lock()
		t.expire()
		switch {
		case t.phase == over:
			t.mu.Unlock()
			return t.conclude()
		case count.held >= quorum:
			t.mu.Unlock()
			return nil
		}
		if failure == nil || !p.Over() { // a round that was cut short says less than the one before
			failure = t.unconfirmed(&count)
		}
		permanent := t.permanent()
		t.mu.Unlock()
		if permanent || !again || !p.Sleep(roundBackoff(&delay, time.Since(start)), nil, nil) {
			failure.cause = p.Because(rlock.ErrOutcomeUnknown)
			return failure
		}
	}
}

// keep asks node i. It is called with mu held, and returns why it did not.
func (t *acquisition) keep(
	i int,
	g *request,
	as string,
	levels int,
	lease time.Duration,
	count *extension,
) error {
	node := t.lock.nodes[i]
	if err := available(node); err != nil {
		return err
	}
	g.mayLast(lease)
	timeout := t.lock.nodeTimeout(node, lease)
	call := &wait.Job{Timeout: timeout, Task: wait.Func(func() {
		sent := time.Now()
		var (
			yes bool
			err error
		)
		if levels == 0 {
			yes, err = node.Extend(as, lease)
		} else {
			yes, err = node.Reenter(as, levels, lease)
		}
		if err == nil && !yes {
			g.lost()
		}
		deadline := watchdog.Deadline(sent, lease)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.expire()
		if yes {
			g.extend(deadline)
		}
		count.pending--
		switch {
		case t.parts[i].request != g:
		case err != nil:
			t.parts[i].err = err
		case yes && !g.trusted().Before(deadline): // or the answer came too late: the part is lost already
			count.held++
			count.kept[i] = true
		}
		t.tell()
	})}
	if !node.Pool().Do(call) {
		return rlock.ErrClosed
	}
	count.pending++
	count.timeouts = append(count.timeouts, timeout)
	return nil
}

// unconfirmed is the error when too few nodes have said in time that they keep the lock. It is
// called with mu held.
func (t *acquisition) unconfirmed(count *extension) *QuorumError {
	e := &QuorumError{Lock: t.lock.name, Want: t.lock.quorum, Granted: count.held, did: "kept"}
	for i := range t.parts {
		part := &t.parts[i]
		err := part.err
		switch {
		case count.kept[i]:
			continue
		case err == nil && part.state == granted:
			err = errNoAnswer
		case err == nil:
			err = cmp.Or(t.refusal(i), errNoPart)
		}
		e.Nodes = append(e.Nodes, NodeError{Server: t.lock.called(i), Err: err})
	}
	return e
}
