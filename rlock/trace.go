package rlock

import (
	"context"
	"sync"
	"sync/atomic"
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

// hold begins the trace of a hold that the caller does not have yet.
func (cl *call) hold(h *Hold) {
	h.parent = cl.caller // without what the tracer's context says about the call
	if cl.tracing.holds == nil {
		return
	}
	l := h.level
	ht := &holdTrace{tracing: cl.tracing, lease: cl.lease,
		end: HoldEnd{Lock: cl.lock, Owner: h.Owner()}}
	ht.of = &ht.levels
	ht.levels.since, ht.levels.first, ht.levels.n = time.Now(), ht, 1
	levels, _ := l.acquisition.(interface{ TracedLevels() *atomic.Value })
	nested := levels != nil && ht.join(levels.TracedLevels())
	ctx, trace := cl.tracing.holds.HoldStart(cl.ctx, HoldStart{Lock: cl.lock,
		Owner: h.Owner(), Token: h.Token(), How: cl.how, Nested: nested, Deadline: h.Deadline(),
		Lease: cl.lease, Renewed: cl.renew})
	h.parent = ctx
	ht.of.mu.Lock()
	ht.trace = trace
	ht.of.mu.Unlock()
	l.trace.Store(ht)
	if reason := l.err(); reason != nil {
		// It has ended before, perhaps unseen: another goroutine of the owner may have released it.
		ht.ended(l, reason)
		ht.released(nil, false)
	}
}

// levelsTrace counts the traced levels of an acquisition.
type levelsTrace struct {
	since time.Time
	first *holdTrace // of the first level

	mu sync.Mutex
	n  int // guarded by mu; once it is 0 again it stays so
}

// join makes the hold a level of the acquisition whose levels are counted there, and reports
// whether it has others: goroutines that share an owner may begin two at the same time.
func (ht *holdTrace) join(levels *atomic.Value) (nested bool) {
	for {
		before := levels.Load()
		if lt, _ := before.(*levelsTrace); lt != nil && lt.add() {
			ht.of = lt
			return true
		}
		if levels.CompareAndSwap(before, &ht.levels) {
			return false
		}
	}
}

// add adds a level, unless all others have ended.
func (lt *levelsTrace) add() bool {
	lt.mu.Lock()
	defer lt.mu.Unlock()
	if lt.n > 0 {
		lt.n++
		return true
	}
	return false
}

// holdTrace reports the end of a hold to the tracer, once.
type holdTrace struct {
	tracing *tracing
	of      *levelsTrace
	levels  levelsTrace // preallocated for the first level

	// Guarded by of.mu.
	trace HoldTrace // nil until the tracer was told of the hold, and if it need not be told more
	lease time.Duration
	state holdTraceState
	end   HoldEnd
}

// holdTraceState is the state of a [holdTrace]. It only grows.
type holdTraceState uint8

const (
	holdLasts    holdTraceState = iota
	holdReleases                // it has ended; what became of the release is not known yet
	holdTold                    // the tracer was told, or is about to be
)

// ended notes the end of the hold, at its first call. Unless a release is under way, whose caller
// tells the result, it is told in the background.
func (ht *holdTrace) ended(l *level, reason error) {
	now, deadline := time.Now(), l.acquisition.Deadline()
	releases := reason == ErrReleased && l.unlocked.Load() //nolint:errorlint // wrapped: a loss
	ht.of.mu.Lock()
	defer ht.of.mu.Unlock()
	if ht.state != holdLasts {
		return
	}
	ht.of.n--
	ht.end.Last, ht.end.Held = ht.of.n == 0, now.Sub(ht.of.since)
	ht.end.Margin, ht.end.Lease = deadline.Sub(now), ht.lease
	ht.state = holdReleases
	if releases {
		return
	}
	ht.state = holdTold
	if reason != ErrReleased { //nolint:errorlint // as above
		ht.end.Err = reason
	}
	ht.tellLater()
}

// tellLater reports the end of the hold in the background. of.mu must be held.
func (ht *holdTrace) tellLater() {
	if ht.trace != nil {
		trace, end := ht.trace, ht.end
		ht.tracing.later.tell(func() { trace.HoldEnd(end) })
	}
}

// released reports the result of the release to the tracer, unless the end was reported before.
func (ht *holdTrace) released(err error, left bool) {
	if ht == nil {
		return
	}
	ht.of.mu.Lock()
	tells := ht.settle(err, left) && ht.trace != nil
	ht.of.mu.Unlock()
	if tells {
		ht.trace.HoldEnd(ht.end)
	}
}

// releasedByClose is released for Options.ReleaseOnClose: a tracer that blocks must not keep Close
// from releasing the others.
func (ht *holdTrace) releasedByClose(err error) {
	if ht == nil {
		return
	}
	ht.of.mu.Lock()
	defer ht.of.mu.Unlock()
	if ht.settle(err, false) {
		ht.tellLater()
	}
}

// settle notes how the release of the hold has ended, and reports whether that is to be told.
// of.mu must be held.
func (ht *holdTrace) settle(err error, left bool) bool {
	if ht.state != holdReleases {
		return false
	}
	ht.state, ht.end.Err, ht.end.Left = holdTold, err, left
	return true
}

// extended notes the lease that the hold has asked for.
func (ht *holdTrace) extended(lease time.Duration) {
	if ht != nil && lease > 0 {
		ht.of.mu.Lock()
		defer ht.of.mu.Unlock()
		ht.lease = lease
	}
}

// renewed notes the lease that a renewal leaves, and returns the one that it found.
func (ht *holdTrace) renewed(lease time.Duration, err error) (found time.Duration, of HoldTrace) {
	ht.of.mu.Lock()
	defer ht.of.mu.Unlock()
	found = ht.lease
	if err == nil {
		ht.lease = lease
	}
	return found, ht.trace
}

// TracedLevels returns where the levels that are traced are counted. The acquisitions of multilock
// and redlock have the same method.
func (a *acquisition) TracedLevels() *atomic.Value { return &a.tracedLevels }

// mostUntold is how many calls may wait for a tracer that blocks, before some are left out.
const mostUntold = 4096

// background makes calls for goroutines that must not block, such as those of a tracer or a logger:
// one call after the other, in order. It has a goroutine while there are calls to make.
type background struct {
	client *Client
	inline bool // a caller makes the calls itself once the client has been closed

	mu      sync.Mutex
	untold  []func() // guarded by mu
	telling bool     // guarded by mu; a goroutine tells
	full    bool     // guarded by mu; something was left out since all was told
}

// tell calls f later. It does not block.
func (b *background) tell(f func()) {
	b.mu.Lock()
	b.untold = append(b.untold, f)
	starts := !b.telling
	b.telling = true
	b.mu.Unlock()
	if starts {
		b.start()
	}
}

func (b *background) start() {
	switch {
	case b.client.group.Go(b.run):
	case b.inline:
		b.run()
	default:
		// The client has been closed. A RedLock of other clients may still tell its tracer, and those
		// must not wait for it.
		go b.run()
	}
}

// tellIfRoom is like tell, for what may be left out while the tracer blocks.
func (b *background) tellIfRoom(f func()) {
	b.mu.Lock()
	full := len(b.untold) >= mostUntold
	first := full && !b.full
	b.full = b.full || full
	b.mu.Unlock()
	switch {
	case first:
		b.client.warn("holdfast: Options.Tracer is blocking, so renewal and node events are dropped " +
			"until it returns; do not block in a tracer")
	case !full:
		b.tell(f)
	}
}

// hasRoom reports whether fewer calls than most are waiting.
func (b *background) hasRoom(most int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.untold) < most
}

// run tells until there is nothing more.
func (b *background) run() {
	done := false
	defer func() {
		if !done {
			b.start() // a call has ended the goroutine
		}
	}()
	for f := b.next(); f != nil; f = b.next() {
		f()
	}
	done = true
}

// next returns the next call; nil if there is none, and nobody tells any more.
func (b *background) next() func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.untold) == 0 {
		b.untold, b.telling, b.full = nil, false, false
		return nil
	}
	f := b.untold[0]
	b.untold[0] = nil
	b.untold = b.untold[1:]
	return f
}
