package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Extend makes a quorum of nodes keep the lock for at least lease from now.
func (a *acquisition) Extend(ctx context.Context, asked rlock.Lease) error {
	lease, err := a.lock.checkLease(asked)
	if err != nil {
		return err
	}
	b := wait.NewBudget(ctx, nil, a.lock.nodes[0].CommandTimeout())
	if err := b.Err(); err != nil {
		return err
	}
	if !a.session.Lock(b) {
		return fmt.Errorf("%w: another call of the same owner still waits for the nodes; retry later",
			b.Because(rlock.ErrOutcomeUnknown))
	}
	defer a.session.Unlock()
	err = a.extend(b, extension{lease: lease}, true, nil)
	if errors.Is(err, rlock.ErrReleased) {
		return fmt.Errorf("%w: this hold is already released", rlock.ErrNotHeld)
	}
	return err
}

// extension is one round of requests to extend the parts of an acquisition. A node may reply after
// the next round has begun.
type extension struct {
	levels int // the new count on the nodes; 0 leaves the count as it is
	lease  time.Duration
	renew  bool    // for the lease of the watchdog, which Options.MaxHold bounds
	open   []*part // whose nodes have not replied; guarded by the acquisition's mutex
	done   []*part // whose nodes have extended; guarded by the acquisition's mutex
}

// extend makes a quorum of the nodes keep the lock for the lease of want from now. With nest, the
// nodes count another level, and extend calls nest with mu held to add the level. If a node does
// not hold the lock, its part is lost. With retry, extend repeats rounds without a quorum until b
// ends. It is called with the session locked.
func (a *acquisition) extend(b *wait.Budget, want extension, retry bool, nest func()) error {
	lease := want.lease
	var delay wait.Backoff
	var failure *QuorumError
	for {
		start, ex := time.Now(), &extension{lease: lease, renew: want.renew}
		// kept reports whether the node of a part has executed the extension and not lost the part since,
		// and open whether the node may still execute it.
		kept := func(p *part) bool { return slices.Contains(ex.done, p) && p.state == granted }
		open := func(p *part) bool { return slices.Contains(ex.open, p) && p.state == granted }
		a.do(func() {
			if nest != nil {
				ex.levels = len(a.levels) + 1
			}
			if retry { // a call without a wait takes at most the timeout of a node
				a.round = ex
			}
			a.longest = max(a.longest, lease)
			if until := start.Add(lease); until.After(a.extendedTo) {
				a.extendedTo = until
			}
			for _, p := range a.parts {
				if p.state == granted {
					p.extend(ex)
				}
			}
		})
		remaining := func(first bool) time.Duration { return a.remaining(kept, open, first) }
		a.waitUntil(b, remaining, func() bool {
			return a.state.over() || a.countIf(kept) >= a.lock.quorum || a.countIf(open) == 0
		})
		over, done := false, false
		a.do(func() {
			a.round = nil
			over, done = a.state.over(), a.countIf(kept) >= a.lock.quorum
			switch {
			case over:
			case !done:
				retry = retry && a.permanentRefusals() <= a.lock.spare
				if failure == nil || !b.Over() { // a round cut short says less than the round before
					failure = a.quorumError("extended", ErrNoReply, kept)
				}
			case nest != nil:
				nest()
			}
		})
		switch {
		case over:
			return a.endLevels()
		case done:
			return nil
		case !retry, !b.Sleep(roundBackoff(&delay, time.Since(start)), nil, nil):
			failure.cause = b.Because(rlock.ErrOutcomeUnknown)
			return failure
		}
	}
}

// shortestLease is the shortest lease that a node accepts.
const shortestLease = 3 * time.Millisecond

// extend asks the node to extend the part. It is called with mu held.
func (p *part) extend(ex *extension) {
	hold := p.hold
	p.failed("extend", p.send(new(wait.Job), wait.Func(func() { p.keep(hold, ex) }), ex.lease))
	if p.err == nil {
		ex.open = append(ex.open, p)
	}
}

// keep sends the request to extend the part, blocks for the reply, and handles it.
func (p *part) keep(hold compose.NodeAcquisition, ex *extension) {
	lease := ex.lease
	if ex.renew && !hold.MayRenew() {
		lease = shortestLease // after Options.MaxHold, the level does not extend the lease
	}
	hold.MayLast(lease)
	sent, yes, err := time.Now(), false, transport.ErrThrown
	defer func() { // even if a hook around rueidis has ended the goroutine
		p.extended(hold, ex, sent, lease, yes, err)
	}()
	yes, err = p.node.Extend(p.owner, ex.levels, lease)
}

// extended handles the reply to a request, sent at sent, to extend the part to a lease.
func (p *part) extended(hold compose.NodeAcquisition, ex *extension, sent time.Time,
	lease time.Duration, yes bool, err error,
) {
	deadline := watchdog.Deadline(sent, lease)
	p.acquisition.do(func() {
		ex.open = slices.DeleteFunc(ex.open, func(open *part) bool { return open == p })
		switch {
		case p.state != granted:
		case err != nil:
			p.failed("extend", err)
		case !yes:
			p.lost(watchdog.ErrGone)
		default:
			p.confirm(sent)
			hold.Extended(deadline)
			if !hold.Deadline().Before(deadline) { // otherwise the part had expired before
				ex.done = append(ex.done, p)
			}
		}
	})
	if err == nil && !yes {
		hold.Drop()
	}
}
