package rlock

import (
	"context"
	"sync"
	"time"
)

// WithGrace returns a context for Lock, TryLock, [Do] and [With] that lets work under the lock
// outlive its caller. Use WithGrace to finish a step under the lock after SIGTERM, or after the
// client of a request has disconnected. If you acquire a hold with the result, [Hold.Context] ends
// d after ctx, with the error and the cause of ctx. The context still ends at once when the lock is
// lost, when you release the hold, and when the client is closed.
//
// The wait for the lock has no grace, and ends with ctx. During the grace, check ctx itself to see
// that ctx has ended.
//
// The deadline of Hold.Context is the deadline of ctx plus d. Once ctx has ended early, the
// deadline is the end of the grace. As without a grace, [Hold.Deadline] is the deadline of the
// lock, and the context ends with [ErrLost] when it passes.
//
// The outermost hold decides. If ctx comes from the context of a hold, WithGrace has no effect, so
// a nested hold ends no later than the hold around it, and gets no second grace. If d is 0 or less,
// holds have no grace. WithGrace does not block. All kinds of locks support a grace.
func WithGrace(ctx context.Context, d time.Duration) context.Context {
	d = max(d, 0)
	if d == graceIn(ctx) {
		return ctx
	}
	return context.WithValue(ctx, graceKey{}, d)
}

type graceKey struct{}

// graceIn returns the grace of the latest [WithGrace], or 0 without any.
func graceIn(ctx context.Context) time.Duration {
	d, _ := ctx.Value(graceKey{}).(time.Duration)
	return d
}

// grace returns how long the context of the hold outlives the context of the caller.
func (h *Hold) grace() time.Duration {
	if h.ownerContext.UnderHold() {
		return 0
	}
	return graceIn(h.parent)
}

// watchCaller makes the context of a hold with a grace, so that the grace begins when the context
// of the caller ends. The context of other holds is made on demand.
func (h *Hold) watchCaller() {
	if h.grace() > 0 {
		h.context()
	}
}

// graced is the context of a caller, but ends later by a grace.
type graced struct {
	context.Context // of the caller
	grace           time.Duration
	over            context.Context // ends with the grace
	end             context.CancelFunc
	unwatch         func() bool // ends the wait for the end of the caller's context

	mu      sync.Mutex
	until   time.Time   // the end of the grace; zero before it begins; guarded by mu
	timer   *time.Timer // ends the grace; nil before it begins; guarded by mu
	stopped bool        // the hold has ended; guarded by mu
}

// withGraced is context.WithCancelCause for a context that ends a grace later than its parent.
func withGraced(parent context.Context, grace time.Duration,
) (context.Context, context.CancelCauseFunc) {
	g := &graced{Context: parent, grace: grace}
	g.over, g.end = context.WithCancel(context.Background())
	ctx, cancel := context.WithCancelCause(g)
	g.unwatch = context.AfterFunc(parent, g.begin)
	return ctx, func(reason error) {
		g.stop()
		cancel(reason)
	}
}

// begin starts the grace, because the context of the caller has ended.
func (g *graced) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	g.until = time.Now().Add(g.grace)
	if due, ok := g.lastEnd(); ok && due.Before(g.until) {
		g.until = due // the timer of the caller's context was late
	}
	g.timer = time.AfterFunc(time.Until(g.until), g.end)
}

// lastEnd returns the latest end of the grace, if the context of the caller has a deadline.
func (g *graced) lastEnd() (time.Time, bool) {
	deadline, ok := g.Context.Deadline()
	if !ok {
		return time.Time{}, false
	}
	return deadline.Add(g.grace), true
}

// stop frees the timer, and what the context of the caller keeps.
func (g *graced) stop() {
	g.unwatch()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	if g.timer != nil {
		g.timer.Stop()
	}
}

// These methods implement [context.Context], with Value of the caller's context. The cause of the
// caller's context becomes the cause of each child, because package context finds it through Value.

func (g *graced) Done() <-chan struct{} { return g.over.Done() }

func (g *graced) Err() error {
	if g.over.Err() == nil {
		return nil
	}
	return g.Context.Err()
}

func (g *graced) Deadline() (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.until.IsZero() {
		return g.until, true
	}
	return g.lastEnd()
}

// AfterFunc saves package context a goroutine for each child.
func (g *graced) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(g.over, f) }
