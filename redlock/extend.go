package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/internal/hooks"
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
	err = a.extend(b, false, lease, true)
	if errors.Is(err, rlock.ErrReleased) {
		return fmt.Errorf("%w: this hold was released before", rlock.ErrNotHeld)
	}
	return err
}

// extension is one round of requests to extend the parts of an acquisition, whose mutex guards it.
type extension struct {
	levels   int // to be set on the nodes; 0 leaves them as they are
	lease    time.Duration
	pending  int
	timeouts []time.Duration // of the nodes that were asked
}

// kept reports whether the node of a part has carried out the extension.
func (ex *extension) kept(p *part) bool { return p.extended == ex }

// extend makes a quorum of the nodes keep the lock for lease from now, with another level if nested
// is set. The part of a node that does not hold the lock is lost. With retry, rounds without a
// quorum are repeated until b ends. It is called with the session locked.
func (a *acquisition) extend(b *wait.Budget, nested bool, lease time.Duration, retry bool) error {
	var (
		delay     wait.Backoff
		failure   *QuorumError
		over      bool
		permanent bool
	)
	for quorum := a.lock.quorum; ; {
		start, e := time.Now(), &extension{lease: lease}
		var decision <-chan struct{}
		var limit time.Duration
		a.do(func() {
			if over = a.state != held; over {
				return
			}
			if nested {
				e.levels = len(a.levels) + 1
			}
			a.longest = max(a.longest, lease)
			if until := start.Add(lease); until.After(a.extendedTo) {
				a.extendedTo = until
			}
			for _, p := range a.parts {
				if p.state == granted {
					p.err = p.extend(e)
				}
			}
			decision = a.await(func() bool {
				return a.state != held || a.countIf(e.kept) >= quorum || e.pending == 0
			})
			limit = nthLongest(e.timeouts, min(quorum, len(e.timeouts)))
		})
		if over {
			return a.endLevels()
		}
		b.Sleep(limit, decision, nil)
		done := false
		a.do(func() {
			over, done = a.state != held, a.countIf(e.kept) >= quorum
			if over || done {
				return
			}
			if failure == nil || !b.Over() { // a round that was cut short says less than the one before
				failure = a.quorumError("kept", errNoAnswer, e.kept)
			}
			permanent = a.permanentRefusals() > a.spare()
		})
		switch {
		case over:
			return a.endLevels()
		case done:
			return nil
		case permanent || !retry || !b.Sleep(roundBackoff(&delay, time.Since(start)), nil, nil):
			failure.cause = b.Because(rlock.ErrOutcomeUnknown)
			return failure
		}
	}
}

// extend asks the node to extend the part, and returns an error if it could not. It is called with
// mu held.
func (p *part) extend(e *extension) error {
	if err := unavailable(p.node); err != nil {
		return err
	}
	p.hold.MayLast(e.lease)
	call := &wait.Job{Timeout: p.acquisition.lock.nodeTimeout(p.node, e.lease)}
	call.Task = wait.Func(func() { p.keep(e) })
	if !p.node.Pool().Do(call) {
		return rlock.ErrClosed
	}
	e.pending++
	e.timeouts = append(e.timeouts, call.Timeout)
	return nil
}

// keep asks the node to extend the part, and handles the reply, for which it blocks.
func (p *part) keep(e *extension) {
	var (
		a    = p.acquisition
		sent = time.Now()
		yes  bool
		err  error
		gone hooks.NodeHold
	)
	if e.levels == 0 {
		yes, err = p.node.Extend(p.owner, e.lease)
	} else {
		yes, err = p.node.Reenter(p.owner, e.levels, e.lease)
	}
	deadline := watchdog.Deadline(sent, e.lease)
	a.do(func() {
		e.pending--
		switch {
		case p.state != granted:
		case err != nil:
			p.err = err
		case !yes:
			gone = p.hold
			p.lost(watchdog.ErrGone)
		default:
			p.hold.Extend(deadline)
			if !p.hold.Deadline().Before(deadline) { // the part had not expired before
				p.extended = e
			}
		}
		a.notify()
	})
	if gone != nil {
		gone.Drop()
	}
}
