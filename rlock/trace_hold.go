package rlock

import (
	"sync"
	"sync/atomic"
	"time"
)

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
	if ht == nil {
		return
	}
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
