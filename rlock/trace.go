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
	waits    WaitTracer    // the tracer, or nil if it is no WaitTracer; likewise below
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

// call is the trace of a call that wants a lock. A call is nil without a tracer, and all methods
// allow nil.
type call struct {
	tracing *tracing
	lock    TracedLock
	caller  context.Context
	ctx     context.Context // of the tracer
	since   time.Time
	lease   time.Duration // in Redis
	renew   bool
	how     How // if the call acquires the lock

	requests int
	waits    time.Time // since when the call waits; zero without a wait
	headed   time.Time // since when the call has been the head; zero before that
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

// begin begins the trace of a call for a lock. The lock may be made of locks of this client.
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

// Context returns the context with which the call continues, from the tracer, or else ctx.
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

// acquires notes how the lock was acquired, unless that is [Free].
func (cl *call) acquires(how How) {
	if cl != nil {
		cl.how = how
	}
}

// given notes that a release gave the lock to the call. The lease is short until the first renewal.
func (cl *call) given(how How, lease time.Duration) {
	if cl != nil {
		cl.how, cl.lease = how, lease
	}
}

// Reenters notes that the owner has the lock already.
func (cl *call) Reenters() { cl.acquires(Reentered) }

// WaitStart notes the start of the wait and calls the tracer, only once.
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

// End reports the end of the call to the tracer, with a hold or an error.
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

// renewed reports the result of an attempt to renew an acquisition.
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

// Failed reports a failed operation of the node to the tracer.
func (n node) Failed(operation string, err error) {
	t := n.client.tracing
	if t == nil || t.nodes == nil {
		return
	}
	d := NodeFailed{Lock: n.traced(), Server: n.Server(), Operation: operation, Err: err}
	t.later.tellIfRoom(func() { t.nodes.NodeFailed(d) })
}

// hold begins the trace of a hold, before the caller has the hold.
func (cl *call) hold(h *Hold) {
	h.parent = cl.caller // without the tracer's values about the call
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
		// The hold has ended already, because another goroutine of the owner may have released it.
		ht.ended(l, reason)
		ht.released(nil, false)
	}
}

// levelsTrace counts the traced levels of an acquisition.
type levelsTrace struct {
	since time.Time
	first *holdTrace // of the first level

	mu sync.Mutex
	n  int // guarded by mu; once n is 0 again it stays 0
}

// join adds the hold to the levels of its acquisition, and reports whether there are other levels.
// Goroutines with the same owner may begin two holds at the same time.
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
	trace HoldTrace // nil before HoldStart has returned, and if the tracer wants no HoldEnd
	lease time.Duration
	state holdTraceState
	end   HoldEnd
}

// holdTraceState is the state of a [holdTrace]. A state only grows.
type holdTraceState uint8

const (
	holdLasts    holdTraceState = iota
	holdReleases                // the hold has ended, and the outcome of the release is not known yet
	holdTold                    // the tracer has received the end, or is about to
)

// ended notes the end of the hold, at the first call. If a release is under way, its caller reports
// the end. Otherwise the client reports the end in the background.
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

// tellLater reports the end of the hold in the background. The caller holds of.mu.
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

// releasedByClose is released for Options.ReleaseOnClose. It reports in the background, because a
// blocked tracer must not keep Close from releasing other locks.
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

// settle notes how the release of the hold ended, and reports whether the tracer should receive
// that. The caller holds of.mu.
func (ht *holdTrace) settle(err error, left bool) bool {
	if ht.state != holdReleases {
		return false
	}
	ht.state, ht.end.Err, ht.end.Left = holdTold, err, left
	return true
}

// extended notes the lease that the hold asked for.
func (ht *holdTrace) extended(lease time.Duration) {
	if ht != nil && lease > 0 {
		ht.of.mu.Lock()
		defer ht.of.mu.Unlock()
		ht.lease = lease
	}
}

// renewed notes the lease after a renewal, and returns the lease before.
func (ht *holdTrace) renewed(lease time.Duration, err error) (found time.Duration, of HoldTrace) {
	ht.of.mu.Lock()
	defer ht.of.mu.Unlock()
	found = ht.lease
	if err == nil {
		ht.lease = lease
	}
	return found, ht.trace
}

// TracedLevels returns the place for the count of traced levels. The acquisitions of multilock and
// redlock have the same method.
func (a *acquisition) TracedLevels() *atomic.Value { return &a.tracedLevels }

// mostUntold is how many calls may wait for a blocked tracer before the client drops calls.
const mostUntold = 4096

// background makes calls for goroutines that must not block, for example calls of a tracer or a
// logger. It makes one call after the other, in order. It has a goroutine while there are calls to
// make.
type background struct {
	client *Client
	inline bool // the caller of tell makes the calls once the client is closed

	mu      sync.Mutex
	untold  []func() // guarded by mu
	telling bool     // guarded by mu; a goroutine makes the calls
	full    bool     // guarded by mu; calls were dropped since untold was last empty
}

// tell calls f later. tell does not block.
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
		// The client has been closed. A RedLock of other clients may still report to the tracer, and
		// those clients must not wait for it.
		go b.run()
	}
}

// tellIfRoom is like tell, for calls that the client may drop while the tracer blocks.
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

// run makes calls until no call is left.
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

// next returns the next call. Without a next call, next returns nil and notes that the goroutine
// ends.
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
