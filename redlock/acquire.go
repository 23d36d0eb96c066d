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
func (a *attempt) run() (*rlock.Hold, error) {
	if err := a.budget.Err(); err != nil {
		return nil, a.ended()
	}
	a.session = sessions.Open(sessionKey{a.lock.identity, a.token})
	defer a.session.Close()
	if !a.session.Lock(a.budget) {
		return nil, a.ended()
	}
	defer a.session.Unlock()
	if t := heldIn(a.session); t != nil {
		hold, err := t.nest(a)
		if !errors.Is(err, rlock.ErrReleased) {
			return hold, err
		}
		// Another goroutine of this owner has released the lock meanwhile. This one is the first
		// again.
	}
	if a.waits {
		return a.queue()
	}
	if hold := a.round(); hold != nil {
		return hold, nil
	}
	return nil, a.ended()
}

// round asks all nodes at once, and returns the hold if a quorum grants it in time. Answers that
// come later are kept if it does, and else released.
func (a *attempt) round() *rlock.Hold {
	l, start := a.lock, time.Now()
	t := newAcquisition(l, a.session, a.token)
	t.mu.Lock()
	t.decided = func() bool {
		yes, open := t.in(granted), t.in(asked)
		if yes >= l.quorum {
			return true
		}
		if yes+open >= l.quorum {
			return false
		}
		// Who waits has failed only for now, and hears more answers out while they may tell what to
		// wait for: whether one other has a quorum, whose release is worth waiting for, or too many
		// nodes refuse for good.
		contender, doomed, most := t.contender(), t.refusing(), len(l.nodes)-l.quorum
		return !a.waits || doomed > most ||
			(contender >= l.quorum || contender+open < l.quorum) && doomed+open <= most
	}
	for i := range l.nodes {
		t.ask(i, t.owner, a.lease)
	}
	limit := t.remaining(a.waits)
	t.mu.Unlock()
	decided := t.await(a.budget, limit)
	t.mu.Lock()
	for limit = t.remaining(false); !decided && limit > 0 && !a.budget.Over(); limit = t.remaining(false) {
		t.mu.Unlock()
		decided = t.await(a.budget, limit)
		t.mu.Lock()
	}
	if t.in(granted) < l.quorum || !time.Now().Before(t.trusted()) {
		took := time.Since(start)
		if v := t.result(decided || a.budget.Over() && took < shortestWait, took); a.last == nil ||
			decided ||
			!a.budget.Over() {
			a.last = v // one that was cut short says less than the one before
			v.permanent = v.permanent || t.delayedBeyond(a.budget.Until)
		}
		t.phase, t.ended = over, rlock.ErrReleased
		t.mu.Unlock()
		t.giveUp()
		return nil
	}
	defer t.mu.Unlock()
	t.phase = held
	for i := range t.parts {
		// What has not even been sent would be a question in line at a node that does not answer.
		// Elsewhere it is just about to be sent: the others were quicker.
		p := &t.parts[i]
		if p.state != asked {
			continue
		}
		if err := available(l.nodes[i]); err != nil && l.nodes[i].Pool().Withdraw(p.call) {
			p.state, p.err = missing, err
		}
	}
	keep(a.session, t)
	return t.begin(a.budget.Ctx, a.renew)
}

// remaining returns for how much longer a quorum may still answer in time. If it cannot, that is 0,
// or with hearOut how much longer any answer may come in time. The time of a node counts from when
// the question was sent. Before that it queues behind those of others in this process, for which
// the node is not to blame: of a thousand locks taken at once the last would fail, though all nodes
// answer as fast as they can. It is called with mu held.
func (t *acquisition) remaining(hearOut bool) time.Duration {
	left := make([]time.Duration, 0, 8)
	for i := range t.parts {
		p := &t.parts[i]
		if p.state != asked {
			continue
		}
		if d := t.lock.nodes[i].Pool().Remaining(p.call); d > 0 {
			left = append(left, d)
		}
	}
	needed := t.lock.quorum - t.in(granted)
	if hearOut {
		needed = min(needed, len(left))
	}
	return lasting(left, needed)
}

// ended says why an attempt ended without the lock.
func (a *attempt) ended() error {
	cause := a.budget.Err()
	if a.last == nil {
		return &QuorumError{Lock: a.lock.name, Want: a.lock.quorum, cause: cause}
	}
	err := *a.last.err
	err.cause = cause
	return &err
}

// nest adds a level to what the owner holds.
func (t *acquisition) nest(a *attempt) (*rlock.Hold, error) {
	t.mu.Lock()
	levels := len(t.levels) + 1
	t.mu.Unlock()
	if err := t.prolong(a.budget, levels, a.lease, a.waits); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if t.phase == over {
		t.mu.Unlock()
		return nil, t.conclude()
	}
	defer t.mu.Unlock()
	return t.begin(a.budget.Ctx, a.renew), nil
}
