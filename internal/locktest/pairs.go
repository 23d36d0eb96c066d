package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/rlock"
)

// Pairs is an [rlock.Tracer] that notes whether what begins ends, once, and as its caller was told.
type Pairs struct {
	mu       sync.Mutex
	problems []string          // guarded by mu
	calls    int               // under way; guarded by mu
	waiting  int               // guarded by mu
	held     map[string]int    // acquisitions, by kind and name; guarded by mu
	holds    []*pairedHold     // guarded by mu
	began    map[string]int    // acquisitions by owner; guarded by mu
	lost     map[string]int    // those that were lost; guarded by mu
	seen     map[rlock.How]int // guarded by mu
}

// NewPairs returns a Pairs that has heard nothing.
func NewPairs() *Pairs {
	return &Pairs{held: make(map[string]int), began: make(map[string]int),
		lost: make(map[string]int), seen: make(map[rlock.How]int)}
}

// pairedCall is a call that was heard of. Its fields are guarded by the mutex of the Pairs.
type pairedCall struct {
	lock         rlock.TracedLock
	wants        rlock.AcquireStart
	ended, waits bool
	waited       bool
	holds        []rlock.HoldStart
}

// pairedHold is a hold that was heard of, and its trace. Its fields are guarded likewise.
type pairedHold struct {
	pairs    *Pairs
	start    rlock.HoldStart
	ends     []rlock.HoldEnd
	released []error // what its Unlock returned
}

type pairsKey struct{}
type pairedHoldKey struct{}

// wrong notes a problem unless ok. mu must be held.
func (p *Pairs) wrong(ok bool, format string, args ...any) {
	if !ok {
		p.problems = append(p.problems, fmt.Sprintf(format, args...))
	}
}

func (p *Pairs) in(ctx context.Context, l rlock.TracedLock, step string) *pairedCall {
	c, _ := ctx.Value(pairsKey{}).(*pairedCall)
	if c == nil || c.lock != l || c.ended {
		p.wrong(false, "%s of %v is not inside its call", step, l)
		return new(pairedCall)
	}
	return c
}

// AcquireStart implements [rlock.Tracer].
func (p *Pairs) AcquireStart(ctx context.Context, d rlock.AcquireStart) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	return context.WithValue(ctx, pairsKey{}, &pairedCall{lock: d.Lock, wants: d})
}

// AcquireEnd implements [rlock.Tracer].
func (p *Pairs) AcquireEnd(ctx context.Context, d rlock.AcquireEnd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.in(ctx, d.Lock, "AcquireEnd")
	c.ended = true
	p.calls--
	p.seen[d.How]++
	p.wrong(!c.waits, "%v: the wait has not ended", d.Lock)
	p.wrong(c.waited || d.Waited == 0, "%v: waited %v", d.Lock, d.Waited)
	p.wrong(d.Waited <= d.Took, "%v: waited %v of %v", d.Lock, d.Waited, d.Took)
	p.wrong((d.Err != nil) == (d.How == rlock.NotAcquired), "%v: %v, %v", d.Lock, d.How, d.Err)
	p.wrong((d.Err == nil) == (len(c.holds) == 1), "%v: %v, %v", d.Lock, d.Err, c.holds)
	for _, h := range c.holds {
		p.wrong(h.How == d.How, "%v: %v and then %v", d.Lock, h.How, d.How)
		p.wrong(h.Renewed == (c.wants.Lease == rlock.Watchdog), "%v for %v", h, c.wants)
	}
}

// WaitStart implements [rlock.WaitTracer].
func (p *Pairs) WaitStart(ctx context.Context, d rlock.WaitStart) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.in(ctx, d.Lock, "WaitStart")
	p.wrong(!c.waited, "%v waits twice", d.Lock)
	c.waits, c.waited = true, true
	p.waiting++
}

// WaitEnd implements [rlock.WaitTracer].
func (p *Pairs) WaitEnd(ctx context.Context, d rlock.WaitEnd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.in(ctx, d.Lock, "WaitEnd")
	p.wrong(c.waits, "%v does not wait", d.Lock)
	c.waits = false
	p.waiting--
}

// HoldStart implements [rlock.HoldTracer].
func (p *Pairs) HoldStart(ctx context.Context, d rlock.HoldStart,
) (context.Context, rlock.HoldTrace) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.in(ctx, d.Lock, "HoldStart")
	c.holds = append(c.holds, d)
	h := &pairedHold{pairs: p, start: d}
	p.holds = append(p.holds, h)
	if !d.Nested {
		p.held[kindAndName(d.Lock)]++
		p.began[d.Owner]++
	}
	return context.WithValue(ctx, pairedHoldKey{}, h), h
}

// HoldEnd implements [rlock.HoldTrace].
func (h *pairedHold) HoldEnd(d rlock.HoldEnd) {
	p := h.pairs
	p.mu.Lock()
	defer p.mu.Unlock()
	h.ends = append(h.ends, d)
	p.wrong(len(h.ends) == 1, "%v: ended more than once: %v", h.start, h.ends)
	p.wrong(d.Lock == h.start.Lock && d.Owner == h.start.Owner, "%v ends as %v", h.start, d)
	p.wrong(d.Held >= 0 && d.Lease > 0, "%v", d)
	// The release of a MultiLock may find that a part was just released by its client's Close.
	notHeld := errors.Is(d.Err, rlock.ErrNotHeld) && d.Lock.Kind != "multilock"
	p.wrong(!notHeld && !errors.Is(d.Err, rlock.ErrReleased), "%v: %v", d.Lock, d.Err)
	if !d.Last {
		return
	}
	key := kindAndName(d.Lock)
	p.held[key]--
	p.wrong(p.held[key] >= 0, "%v: more have ended than begun", d.Lock)
	if errors.Is(d.Err, rlock.ErrLost) {
		p.lost[d.Owner]++
	}
}

func kindAndName(l rlock.TracedLock) string { return l.Kind + " " + l.Name }

// Unlocked notes what Unlock has returned for a hold.
func (p *Pairs) Unlocked(h *rlock.Hold, err error) {
	ph, _ := h.Context().Value(pairedHoldKey{}).(*pairedHold)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ph == nil || ph.start.Owner != h.Owner() {
		p.wrong(false, "the context of a hold of %s is not the tracer's", h.Name())
		return
	}
	ph.released = append(ph.released, err)
}

// Check requires, once all clients are closed, that everything has ended as it should.
func (p *Pairs) Check(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	lost := 0
	for _, n := range p.lost {
		lost += n
	}
	t.Logf("%d holds, %d losses, %v", len(p.holds), lost, p.seen)
	p.wrong(p.calls == 0, "%d calls have not ended", p.calls)
	p.wrong(p.waiting == 0, "%d still wait", p.waiting)
	for lock, n := range p.held {
		p.wrong(n == 0, "%s is held %d times", lock, n)
	}
	for owner, n := range p.lost {
		p.wrong(n <= p.began[owner], "%s was lost %d times, and began %d", owner, n, p.began[owner])
	}
	for _, h := range p.holds {
		if len(h.ends) == 0 {
			p.wrong(false, "%v has not ended", h.start)
			continue
		}
		end := h.ends[0].Err
		for _, err := range h.released {
			as := func(target error) bool { return errors.Is(err, target) == errors.Is(end, target) }
			ok := errors.Is(err, rlock.ErrNotHeld) || errors.Is(end, rlock.ErrClosed) ||
				(err == nil) == (end == nil) && as(rlock.ErrLost) &&
					// A MultiLock that has lost a part may also fail to release another.
					(as(rlock.ErrOutcomeUnknown) || errors.Is(end, rlock.ErrLost))
			p.wrong(ok, "%v: Unlock returned %v, and the tracer heard %v", h.start, err, end)
		}
	}
	require.Empty(t, p.problems)
}

// Quiet reports whether every hold has ended.
func (p *Pairs) Quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.holds {
		if len(h.ends) == 0 {
			return false
		}
	}
	return true
}
