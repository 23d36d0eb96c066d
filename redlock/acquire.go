package redlock

import (
	"errors"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/rlock"
)

// attempt is one caller's way to a lock. It is used by one goroutine.
type attempt struct {
	lock    *Lock
	budget  *wait.Budget
	waits   bool
	lease   time.Duration
	renew   bool
	token   owner.Token
	session *lockSession

	last *result // the last round's; nil before the first
}

// run gets the lock, or tells why not. It waits for its turn at the owner's session first.
func (at *attempt) run() (*rlock.Hold, error) {
	if err := at.budget.Err(); err != nil {
		return nil, at.failure()
	}
	at.session = sessions.Open(sessionKey{at.lock.identity, at.token})
	defer at.session.Close()
	if !at.session.Lock(at.budget) {
		return nil, at.failure()
	}
	defer at.session.Unlock()
	if a := heldIn(at.session); a != nil {
		hold, err := a.nest(at)
		if !errors.Is(err, rlock.ErrReleased) {
			return hold, err
		}
		// Another goroutine of this owner has released the lock meanwhile. This one is the first
		// again.
	}
	if at.waits {
		return at.queue()
	}
	if hold := at.round(); hold != nil {
		return hold, nil
	}
	return nil, at.failure()
}

// round asks all nodes at once, and returns the hold if a quorum grants it in time. Answers that
// come later are kept if it does, and else released.
func (at *attempt) round() *rlock.Hold {
	l, start := at.lock, time.Now()
	a := newAcquisition(l, at.session, at.token)
	a.mu.Lock()
	a.decided = func() bool {
		yes, open := a.count(granted), a.count(asked)
		if yes >= l.quorum {
			return true
		}
		if yes+open >= l.quorum {
			return false
		}
		// Who waits has failed only for now, and hears more answers out while they may tell what to
		// wait for: whether one other has a quorum, whose release is worth waiting for, or too many
		// nodes refuse for good.
		contender, doomed, most := a.contenderNodes(), a.permanentRefusals(), len(l.nodes)-l.quorum
		return !at.waits || doomed > most ||
			(contender >= l.quorum || contender+open < l.quorum) && doomed+open <= most
	}
	for i := range l.nodes {
		a.ask(i, a.owner, at.lease)
	}
	limit := a.remaining(at.waits)
	a.mu.Unlock()
	decided := a.waitDecided(at.budget, limit)
	a.mu.Lock()
	for limit = a.remaining(false); !decided && limit > 0 && !at.budget.Over(); limit = a.remaining(false) {
		a.mu.Unlock()
		decided = a.waitDecided(at.budget, limit)
		a.mu.Lock()
	}
	if a.count(granted) < l.quorum || !time.Now().Before(a.trustedUntil()) {
		took := time.Since(start)
		if r := a.result(decided || at.budget.Over() && took < shortestWait, took); at.last == nil ||
			decided ||
			!at.budget.Over() {
			at.last = r // one that was cut short says less than the one before
			r.permanent = r.permanent || a.delayedBeyond(at.budget.Until)
		}
		a.phase, a.reason = over, rlock.ErrReleased
		a.mu.Unlock()
		a.releaseAll()
		return nil
	}
	defer a.mu.Unlock()
	a.phase = held
	for i := range a.parts {
		// What has not even been sent would be a question in line at a node that does not answer.
		// Elsewhere it is just about to be sent: the others were quicker.
		p := &a.parts[i]
		if p.state != asked {
			continue
		}
		if err := unavailable(l.nodes[i]); err != nil && l.nodes[i].Pool().Withdraw(p.call) {
			p.state, p.err = missing, err
		}
	}
	attach(at.session, a)
	return a.addLevel(at.budget.Ctx, at.renew)
}

// remaining returns for how much longer a quorum may still answer in time. If it cannot, that is 0,
// or with hearOut how much longer any answer may come in time. The time of a node counts from when
// the question was sent. Before that it queues behind those of others in this process, for which
// the node is not to blame: of a thousand locks taken at once the last would fail, though all nodes
// answer as fast as they can. It is called with mu held.
func (a *acquisition) remaining(allReplies bool) time.Duration {
	left := make([]time.Duration, 0, 8)
	for i := range a.parts {
		p := &a.parts[i]
		if p.state != asked {
			continue
		}
		if d := a.lock.nodes[i].Pool().Remaining(p.call); d > 0 {
			left = append(left, d)
		}
	}
	needed := a.lock.quorum - a.count(granted)
	if allReplies {
		needed = min(needed, len(left))
	}
	return nthLongest(left, needed)
}

// ended says why an attempt ended without the lock.
func (at *attempt) failure() error {
	cause := at.budget.Err()
	if at.last == nil {
		return &QuorumError{Lock: at.lock.name, Want: at.lock.quorum, cause: cause}
	}
	err := *at.last.err
	err.cause = cause
	return &err
}

// nest adds a level to what the owner holds.
func (a *acquisition) nest(at *attempt) (*rlock.Hold, error) {
	a.mu.Lock()
	levels := len(a.levels) + 1
	a.mu.Unlock()
	if err := a.extend(at.budget, levels, at.lease, at.waits); err != nil {
		return nil, err
	}
	a.mu.Lock()
	if a.phase == over {
		a.mu.Unlock()
		return nil, a.endLevels()
	}
	defer a.mu.Unlock()
	return a.addLevel(at.budget.Ctx, at.renew), nil
}
