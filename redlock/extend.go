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

// Extend makes a quorum of nodes keep the lock for at least lease from now.
func (a *acquisition) Extend(ctx context.Context, lease time.Duration) error {
	if lease == rlock.Watchdog {
		lease = a.lock.nodes[0].WatchdogLease()
	}
	lease, err := a.lock.options.checkLease(lease)
	if err != nil {
		return err
	}
	b := wait.NewBudget(ctx, nil, a.lock.nodes[0].CommandTimeout())
	defer b.Stop()
	if err := b.Err(); err != nil {
		return err
	}
	if !a.session.Lock(b) {
		return fmt.Errorf("%w: another call of the same owner is still waiting for the nodes",
			b.Because(rlock.ErrOutcomeUnknown))
	}
	defer a.session.Unlock()
	err = a.extend(b, 0, lease, true)
	if errors.Is(err, rlock.ErrReleased) {
		return fmt.Errorf("%w: this hold was released before", rlock.ErrNotHeld)
	}
	return err
}

// extension counts the replies to the requests to extend an acquisition. It is guarded by the
// acquisition's mutex.
type extension struct {
	pending, held int
	kept          []bool          // by node
	timeouts      []time.Duration // of the nodes that were asked
}

// extend makes a quorum of the nodes keep the lock for lease from now. It sets the number of levels
// on the nodes, unless levels is 0. The part of a node that does not hold the lock is lost. With
// retry, rounds without a quorum are repeated until b ends. It is called with the session locked.
func (a *acquisition) extend(b *wait.Budget, levels int, lease time.Duration, retry bool) error {
	var (
		delay   wait.Backoff
		failure *QuorumError
	)
	for {
		start := time.Now()
		count := extension{kept: make([]bool, len(a.lock.nodes))}
		a.mu.Lock()
		a.expire()
		if a.phase == over {
			a.mu.Unlock()
			return a.endLevels()
		}
		a.longest = max(a.longest, lease)
		if until := start.Add(lease); until.After(a.extendedTo) {
			a.extendedTo = until
		}
		quorum := a.lock.quorum
		a.decided = func() bool {
			return a.phase == over || count.held >= quorum || count.pending == 0
		}
		for i := range a.parts {
			if p := &a.parts[i]; p.state == granted {
				p.err = a.extendPart(p.request, levels, lease, &count)
			}
		}
		limit := nthLongest(count.timeouts, min(quorum, len(count.timeouts)))
		a.mu.Unlock()
		a.waitDecided(b, limit)

		a.mu.Lock()
		a.expire()
		switch {
		case a.phase == over:
			a.mu.Unlock()
			return a.endLevels()
		case count.held >= quorum:
			a.mu.Unlock()
			return nil
		}
		if failure == nil || !b.Over() { // a round that was cut short says less than the one before
			failure = a.extensionError(&count)
		}
		permanent := a.permanent()
		a.mu.Unlock()
		if permanent || !retry || !b.Sleep(roundBackoff(&delay, time.Since(start)), nil, nil) {
			failure.cause = b.Because(rlock.ErrOutcomeUnknown)
			return failure
		}
	}
}

// extendPart asks a node to extend its part q, and counts the reply. It returns an error if it
// could not ask. It is called with mu held.
func (a *acquisition) extendPart(
	q *request, levels int, lease time.Duration, count *extension,
) error {
	i, node := q.node, a.lock.nodes[q.node]
	if err := unavailable(node); err != nil {
		return err
	}
	q.mayLast(lease)
	timeout := a.lock.nodeTimeout(node, lease)
	call := &wait.Job{Timeout: timeout, Task: wait.Func(func() {
		sent := time.Now()
		var (
			yes bool
			err error
		)
		if levels == 0 {
			yes, err = node.Extend(q.owner, lease)
		} else {
			yes, err = node.Reenter(q.owner, levels, lease)
		}
		if err == nil && !yes {
			q.lost()
		}
		deadline := watchdog.Deadline(sent, lease)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.expire()
		if yes {
			q.setDeadline(deadline)
		}
		count.pending--
		switch {
		case a.parts[i].request != q:
		case err != nil:
			a.parts[i].err = err
		case yes && !q.trustedUntil().Before(deadline): // false if the part had expired before
			count.held++
			count.kept[i] = true
		}
		a.notify()
	})}
	if !node.Pool().Do(call) {
		return rlock.ErrClosed
	}
	count.pending++
	count.timeouts = append(count.timeouts, timeout)
	return nil
}

// extensionError returns the error of an extension that too few nodes have confirmed in time. It is
// called with mu held.
func (a *acquisition) extensionError(count *extension) *QuorumError {
	e := &QuorumError{Lock: a.lock.name, Want: a.lock.quorum, Granted: count.held, did: "kept"}
	for i := range a.parts {
		p := &a.parts[i]
		err := p.err
		switch {
		case count.kept[i]:
			continue
		case err == nil && p.state == granted:
			err = errNoAnswer
		case err == nil:
			err = cmp.Or(a.refusal(i), errNoPart)
		}
		e.Nodes = append(e.Nodes, NodeError{Server: a.lock.serverName(i), Err: err})
	}
	return e
}
