package redlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/lua"
	"holdfast/rlock"
)

// shortestWait is the shortest wait of TryLock, so that the nodes have time to reply.
const shortestWait = 10 * time.Millisecond

// attempt is one call to Lock or TryLock. It must not be used concurrently.
type attempt struct {
	lock    *Lock
	budget  wait.Budget
	waits   bool
	lease   time.Duration
	renew   bool
	trace   trace
	session *lockSession
	last    *result // of the last round; nil before the first
}

// acquire acquires the lock within a trace.
func (l *Lock) acquire(ctx context.Context, limit time.Duration, lease rlock.Lease,
) (*rlock.Hold, error) {
	tr := hook.Trace(ctx, l.first, "redlock", l.name, l.server, limit, lease)
	var h *rlock.Hold
	returned := false
	defer func() {
		if !returned && h != nil { // the tracer has panicked or ended the goroutine
			_ = h.Unlock()
		}
	}()
	h, err := l.take(tr.Context(ctx), tr, limit, lease)
	err = l.wrap(err)
	tr.End(h, err)
	returned = true
	return h, err
}

// trace is the trace of a call.
type trace interface {
	Context(ctx context.Context) context.Context
	Reenters()    // called if the owner holds the lock already
	WaitStart()   // called when the caller begins to wait
	Heads()       // called when the caller becomes the head of the queue
	Rounds() bool // whether the tracer receives rounds
	Round(d rlock.RoundEnd)
}

// take acquires the lock, or adds a nested hold for the owner in ctx.
func (l *Lock) take(ctx context.Context, tr trace, limit time.Duration, lease rlock.Lease,
) (h *rlock.Hold, err error) {
	if err := cmp.Or(l.invalid, compose.CheckTimes(limit, time.Duration(lease))); err != nil {
		return nil, err
	}
	at := attempt{lock: l, waits: limit != rlock.NoWait, renew: lease < 0, trace: tr}
	at.lease, err = l.checkLease(lease)
	if err != nil {
		return nil, err
	}
	token, _ := owner.From(ctx)
	if token == 0 {
		token = owner.New()
		ctx = owner.With(ctx, token)
	}
	switch {
	case !at.waits:
		limit = l.nodes[0].CommandTimeout()
	case limit != wait.Unlimited:
		limit = max(limit, shortestWait)
	}
	at.budget.Begin(ctx, nil, limit)
	at.session = sessions.Open(sessionKey{l.identity, token})
	defer at.session.Close()
	if at.budget.Err() != nil || !at.session.Lock(&at.budget) {
		return nil, at.failure()
	}
	defer at.session.Unlock()
	if a := heldIn(at.session); a != nil {
		err := a.extend(&at.budget, extension{lease: at.lease, renew: at.renew}, at.waits,
			func() { h = a.addLevel(ctx, at.renew) })
		if !errors.Is(err, rlock.ErrReleased) {
			tr.Reenters()
			return h, err
		}
		// Another goroutine of this owner has released the last hold meanwhile.
	}
	if at.waits {
		return at.queue()
	}
	h = at.round()
	if h == nil {
		err = at.failure()
	}
	return h, err
}

// round asks all nodes concurrently, and returns the hold if a quorum grants the lock in time; else
// nil. After a success, round keeps parts that are granted later. After a failure, it releases
// them.
func (at *attempt) round() (hold *rlock.Hold) {
	l, start := at.lock, time.Now()
	a := &acquisition{lock: l, session: at.session, owner: l.nodes[0].NewOwner(), state: asking,
		parts: make([]*part, len(l.nodes)), site: l.callSite()}
	ballot := lua.NewBallot(a.owner, at.lease, l.delay)
	parts := make([]part, len(l.nodes)) // together, because they last equally long
	a.do(func() {
		for i, node := range l.nodes {
			a.parts[i] = parts[i].ask(a, node, a.owner, at.lease, ballot)
		}
	})
	decided := a.waitUntil(&at.budget, func(first bool) time.Duration {
		return a.remaining(in(granted), in(asked), first && at.waits)
	}, func() bool {
		yes, open := a.count(granted), a.count(asked)
		if yes+open >= l.quorum {
			return yes >= l.quorum
		}
		// The round has failed. A waiting caller needs more replies while they may show that another
		// owner has a quorum, or that waiting does not help because too many nodes reject the lock for
		// good.
		contender, refused := a.contenderNodes(), a.permanentRefusals()
		return !at.waits || refused > l.spare ||
			(contender >= l.quorum || contender+open < l.quorum) && refused+open <= l.spare
	})
	var told rlock.RoundEnd
	a.do(func() {
		if at.trace.Rounds() {
			told = a.roundEnd(decided, time.Since(start))
		}
		if a.count(granted) >= l.quorum && time.Until(a.trustedUntil()) > 0 {
			hold = at.succeed(a)
			return
		}
		// A round that was cut short says less than the round before.
		if decided || at.last == nil || !at.budget.Over() {
			at.last = a.result(&at.budget, decided, time.Since(start))
		}
		a.end(failed, rlock.ErrReleased, time.Time{})
	})
	returned := false
	defer func() {
		if !returned && hold != nil { // the tracer has panicked or ended the goroutine
			_ = hold.Unlock()
		}
	}()
	at.trace.Round(told)
	returned = true
	return hold
}

// callSite returns where the caller acquires the lock, if a client needs that.
func (l *Lock) callSite() (site []uintptr) {
	for _, node := range l.nodes {
		site = node.CallSite()
		if site != nil {
			break
		}
	}
	return site
}

// roundEnd returns the report of a round for a tracer. Called with mu held.
func (a *acquisition) roundEnd(decided bool, took time.Duration) rlock.RoundEnd {
	noReply := ErrNoReply
	if decided {
		noReply = errNotAwaited
	}
	e := a.quorumError("", noReply, in(granted))
	d := rlock.RoundEnd{Want: e.Want, Granted: e.Granted, Took: took}
	for _, n := range e.Nodes {
		if !errors.Is(n.Err, errNotAwaited) {
			d.Refused = append(d.Refused, rlock.RefusedNode(n))
		}
	}
	return d
}

// succeed gives an acquisition with a quorum to the owner. It is called with mu held.
func (at *attempt) succeed(a *acquisition) *rlock.Hold {
	a.state.enter(held)
	a.acquired = time.Now()
	for _, p := range a.parts {
		// Withdraw a request that still waits in the pool of a stalled or closed node. Other nodes still
		// get their requests, because the quorum was only faster.
		if p.state == asked {
			if err := unavailable(p.node); err != nil && p.node.Pool().Withdraw(&p.request) {
				p.state.enter(missing)
				p.err = err
			}
		}
	}
	a.budget.Adopt(&at.budget)
	lostAcquisitions.Forget(at.session.Key())
	at.session.Use() // until end
	at.session.Do(func(state **acquisition) { *state = a })
	return a.addLevel(at.budget.Ctx, at.renew)
}

// remaining returns how much longer enough nodes for a quorum may reply in time, counting nodes
// that agreed; 0 if too few nodes are left. With anyReply, remaining then returns how much longer
// all asked nodes may reply. The time of a node counts from sending its request, not from queueing.
// Otherwise the last of a thousand concurrent acquisitions would fail, however fast the nodes
// reply. Called with mu held.
func (a *acquisition) remaining(agreed, asked func(*part) bool, anyReply bool) time.Duration {
	left := make([]time.Duration, 0, 8)
	for _, p := range a.parts {
		if asked(p) {
			if d := p.node.Pool().Remaining(p.call); d > 0 {
				left = append(left, d)
			}
		}
	}
	needed := a.lock.quorum - a.countIf(agreed)
	if anyReply {
		needed = min(needed, len(left))
	}
	// A single node with a longer timeout does not delay a result that needs other nodes.
	return nthLast(left, needed, cmp.Compare)
}

// failure returns the error of an attempt that ended without the lock.
func (at *attempt) failure() error {
	err := QuorumError{Lock: at.lock.name, Want: at.lock.quorum}
	if at.last != nil {
		err = *at.last.err
	}
	err.cause = at.budget.Err()
	return &err
}
