package rlock

import (
	"context"
	"time"
)

// tracing calls the tracer of a client. It is nil without a tracer.
type tracing struct {
	tracer   Tracer
	waits    WaitTracer    // the tracer, if it is one; else nil, as the following
	holds    HoldTracer    //
	renewals RenewalTracer //
	rounds   RoundTracer   //
	nodes    NodeTracer    //
	later    background
}

func newTracing(c *Client) *tracing {
	t := c.options.Tracer
	if t == nil {
		return nil
	}
	tr := &tracing{tracer: t, later: background{client: c}}
	tr.waits, _ = t.(WaitTracer)
	tr.holds, _ = t.(HoldTracer)
	tr.renewals, _ = t.(RenewalTracer)
	tr.rounds, _ = t.(RoundTracer)
	tr.nodes, _ = t.(NodeTracer)
	return tr
}

// traced names the lock to a tracer.
func (l *Lock) traced() TracedLock {
	return TracedLock{Name: l.name, Kind: l.kindName(), Server: l.Server()}
}

// call is the trace of a call that wants a lock. Nil without a tracer: all methods allow that.
type call struct {
	tracing *tracing
	lock    TracedLock
	caller  context.Context
	ctx     context.Context // of the tracer
	since   time.Time
	lease   time.Duration // in Redis
	renew   bool
	how     How // if the lock is acquired

	requests int
	waits    time.Time // since when it waits; zero if it does not
	headed   time.Time // since when it has been the head; zero if it has not
	waited   time.Duration
}

// trace begins the trace of a call that wants the lock.
func (l *Lock) trace(ctx context.Context, wait time.Duration, lease Lease) *call {
	if l.client.tracing == nil {
		return nil
	}
	return l.client.tracing.begin(ctx, l.client, l.traced(),
		AcquireStart{Since: time.Now(), Wait: wait, Lease: lease})
}

// begin begins the trace of a call that wants a lock, perhaps one made of locks of this client.
func (t *tracing) begin(ctx context.Context, c *Client, lock TracedLock, d AcquireStart) *call {
	d.Lock = lock
	cl := &call{tracing: t, lock: lock, caller: ctx, since: d.Since, how: Free,
		lease: time.Duration(d.Lease)}
	cl.renew = d.Lease < 0
	if cl.renew {
		cl.lease = c.options.WatchdogLease
	}
	cl.ctx = t.tracer.AcquireStart(ctx, d)
	return cl
}

// Context returns the context with which the call goes on: that of the tracer, or else ctx.
func (cl *call) Context(ctx context.Context) context.Context {
	if cl == nil {
		return ctx
	}
	return cl.ctx
}

// asks counts a request.
func (cl *call) asks() {
	if cl != nil {
		cl.requests++
	}
}

// acquires notes how the lock was acquired, if that is not [Free].
func (cl *call) acquires(how How) {
	if cl != nil {
		cl.how = how
	}
}

// given notes that a release gave it the lock, for a lease that is short until it is renewed.
func (cl *call) given(how How, lease time.Duration) {
	if cl != nil {
		cl.how, cl.lease = how, lease
	}
}

// Reenters notes that the owner has the lock already.
func (cl *call) Reenters() { cl.acquires(Reentered) }

// WaitStart notes the start of the wait, once, and calls the tracer.
func (cl *call) WaitStart() {
	if cl == nil || !cl.waits.IsZero() {
		return
	}
	cl.waits = time.Now()
	if w := cl.tracing.waits; w != nil {
		w.WaitStart(cl.ctx, WaitStart{cl.lock})
	}
}

// Heads notes that the caller has become the head of its queue.
func (cl *call) Heads() {
	if cl != nil && cl.headed.IsZero() {
		cl.headed = time.Now()
	}
}

// Rounds reports whether the tracer is a [RoundTracer].
func (cl *call) Rounds() bool { return cl != nil && cl.tracing.rounds != nil }

// Round reports the end of a round to the tracer.
func (cl *call) Round(d RoundEnd) {
	cl.asks()
	if cl.Rounds() {
		d.Lock, d.Round = cl.lock, cl.requests
		cl.tracing.rounds.RoundEnd(cl.ctx, d)
	}
}

// End reports the end of the call to the tracer: with a hold, or with an error.
func (cl *call) End(h *Hold, err error) {
	if cl == nil {
		return
	}
	if !cl.waits.IsZero() {
		cl.waited = time.Since(cl.waits)
		if w := cl.tracing.waits; w != nil {
			w.WaitEnd(cl.ctx, WaitEnd{Lock: cl.lock, Waited: cl.waited, BecameHead: cl.headed})
		}
	}
	if err != nil {
		cl.how = NotAcquired
	} else {
		cl.hold(h)
	}
	cl.tracing.tracer.AcquireEnd(cl.ctx, AcquireEnd{Lock: cl.lock, Err: err, How: cl.how,
		Took: time.Since(cl.since), Waited: cl.waited, Requests: cl.requests})
}

// renewed reports the result of a try to renew an acquisition.
func (t *tracing) renewed(a *acquisition, err error) {
	if t == nil || t.renewals == nil {
		return
	}
	d := RenewalEnd{Lock: a.lock.traced(), Owner: a.owner, Err: err,
		Margin: time.Until(a.Deadline()), Lease: a.client.options.WatchdogLease}
	if lt, _ := a.tracedLevels.Load().(*levelsTrace); lt != nil {
		d.Lease, d.Hold = lt.first.renewed(d.Lease, err)
	}
	t.later.tellIfRoom(func() { t.renewals.RenewalEnd(d) })
}

// Failed reports to the tracer what the node did not do for a RedLock.
func (n node) Failed(operation string, err error) {
	t := n.client.tracing
	if t == nil || t.nodes == nil {
		return
	}
	d := NodeFailed{Lock: n.traced(), Server: n.Server(), Operation: operation, Err: err}
	t.later.tellIfRoom(func() { t.nodes.NodeFailed(d) })
}
