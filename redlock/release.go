package redlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/internal/rediserr"
	"holdfast/internal/transport"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// Release releases a level. With the last level, Release releases the lock. See waitForRelease.
func (a *acquisition) Release(h *rlock.Hold) error {
	switch l, after := a.endLevel(h, releasing); after {
	case held:
		l.end(rlock.ErrReleased)
		return nil
	case releasing:
		return a.waitForRelease()
	}
	return a.endLevels() // finish may not have reached this level yet
}

// Leave ends a level. With the last level, the nodes keep the lock until its leases end.
func (a *acquisition) Leave(h *rlock.Hold) {
	if l, after := a.endLevel(h, left); after == held {
		l.end(rlock.ErrReleased)
	}
}

// endLevel removes a level, and returns it with the state afterwards. If no level is left, endLevel
// ends the acquisition.
func (a *acquisition) endLevel(h *rlock.Hold, as phase) (l level, after phase) {
	a.do(func() {
		i := slices.IndexFunc(a.levels, func(l level) bool { return hook.Same(l.hold, h) })
		l = a.levels[i]
		switch {
		case a.state != held:
			a.unlocked++
			if a.unlocked == len(a.levels) {
				lostAcquisitions.Remove(a.session.Key(), a)
			}
		case len(a.levels) > 1:
			a.levels = slices.Delete(a.levels, i, i+1)
			if l.renew && !a.renews() {
				a.setRenew(false)
			}
		default:
			a.end(as, rlock.ErrReleased, a.trustedUntil())
		}
		after = a.state
	})
	return l, after
}

// freeing is a part as the [wait.Runner] of its release.
type freeing part

// Run calls free.
func (f *freeing) Run() { (*part)(f).free() }

// free asks the node to release the part, blocks for the reply, and handles it.
func (p *part) free() {
	reply, err := lua.Released{}, transport.ErrThrown
	defer p.acquisition.do(func() { // even if a hook around rueidis has ended the goroutine
		switch {
		case err != nil:
			p.unconfirmed = p.unconfirmed || rediserr.ClassOf(err) == rediserr.ClassUnknown
			p.unreleased(err)
		case reply.Held || p.unconfirmed: // an earlier try without a reply may have released it
			p.state.enter(freed)
		default:
			p.state.enter(gone)
		}
	})
	reply, err = p.node.Release(p.owner)
}

// waitForRelease retries failed releases. It blocks until it knows whether a quorum held the lock
// until now, for at most the CommandTimeout of the first node's client.
func (a *acquisition) waitForRelease() error {
	b := a.budget.Begin(context.Background(), nil, a.lock.nodes[0].CommandTimeout())
	conclusive := func() bool { // more replies make no difference
		yes, open := a.count(freed), a.count(releaseSent, unwanted, releaseDue)
		return yes >= a.lock.quorum || yes+open < a.lock.quorum
	}
	const resendAfter = 50 * time.Millisecond // how long failed releases wait for other replies
	var delay wait.Backoff
	for {
		start, over, failing := time.Now(), false, false
		a.waitUntil(b, func(bool) time.Duration { return time.Until(start.Add(resendAfter)) },
			func() bool { return conclusive() || a.count(releaseSent, unwanted) == 0 })
		a.do(func() { over, failing = conclusive() || b.Over(), a.count(releaseDue) > 0 })
		if over || failing && !b.Sleep(roundBackoff(&delay, time.Since(start)), nil, nil) {
			return a.outcome()
		}
		a.do(a.sendReleases)
	}
}

// outcome leaves the remaining releases to the background. It returns nil if a quorum has released
// the lock, an [rlock.LostError] if no quorum held the lock any more, and otherwise an unknown
// outcome.
func (a *acquisition) outcome() (err error) {
	a.do(func() {
		a.state.enter(released)
		switch {
		case a.count(freed) >= a.lock.quorum:
		case a.count(gone, missing) > a.lock.spare:
			holds := in(freed, unwanted, releaseDue, releaseSent, kept)
			err = a.lostError(watchdog.ErrGone, holds)
		default:
			e := a.quorumError("released", ErrNoReply, in(freed))
			e.cause, err = rlock.ErrOutcomeUnknown, e
		}
		a.sendReleases()
	})
	a.report(err)
	return err
}

// The methods below are called with mu held.

// cleanUp releases the part in the background, and retries until its lease ends. A rejected part
// needs no clean-up, because a script that rejects changes nothing.
func (p *part) cleanUp() { p.node.CleanUp(p.owner, time.Now().Add(p.acquisition.longest)) }

// sendReleases sends the due releases of the parts, unless their nodes are stalled.
func (a *acquisition) sendReleases() {
	for _, p := range a.parts {
		if p.state != releaseDue {
			continue
		}
		call := &p.release
		if call.Runner != nil {
			call = new(wait.Job)
		}
		if err := p.send(call, (*freeing)(p), a.longest); err != nil {
			p.unreleased(err)
		} else {
			p.state.enter(releaseSent)
		}
	}
}

// unreleased records why a release has failed. Once nobody waits for the release, the cleaner
// retries.
func (p *part) unreleased(err error) {
	p.failed("release", err)
	closed := errors.Is(err, rlock.ErrClosed)
	switch {
	case closed || p.node.Permanent(err):
		p.state.enter(kept)
	case p.state == releaseSent:
		p.state.enter(releaseDue)
	}
	// A closing client may still clean up. Otherwise the part ends with its lease.
	if closed || p.state == releaseDue && p.acquisition.state != releasing {
		p.cleanUp()
	}
}
