package locktest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"holdfast/rlock"
)

// Tracer is an [rlock.Tracer] of all interfaces that records what it hears.
type Tracer struct {
	// Block, unless nil, is called for each event before it is recorded.
	Block func(event any)

	mu     sync.Mutex
	events []any // guarded by mu
}

// TraceKey is the key of what a [Tracer] adds to contexts: the event that it heard then.
type TraceKey struct{}

// record records an event.
func (tr *Tracer) record(event any) {
	if tr.Block != nil {
		tr.Block(event)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.events = append(tr.events, event)
}

// Events returns what was heard so far.
func (tr *Tracer) Events() []any {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.events)
}

// Forget forgets what was heard so far.
func (tr *Tracer) Forget() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.events = nil
}

// Heard returns the events of one type that a tracer has heard so far.
func Heard[T any](tr *Tracer) (of []T) {
	for _, event := range tr.Events() {
		if event, ok := event.(T); ok {
			of = append(of, event)
		}
	}
	return of
}

// WaitToHear returns the events of one type once there are at least n.
func WaitToHear[T any](t testing.TB, tr *Tracer, n int) (of []T) {
	t.Helper()
	Eventually(t, func() bool {
		of = Heard[T](tr)
		return len(of) >= n
	}, "the tracer was not told")
	return of
}

// AcquireStart implements [rlock.Tracer].
func (tr *Tracer) AcquireStart(ctx context.Context, d rlock.AcquireStart) context.Context {
	tr.record(d)
	return context.WithValue(ctx, TraceKey{}, d)
}

// AcquireEnd implements [rlock.Tracer].
func (tr *Tracer) AcquireEnd(_ context.Context, d rlock.AcquireEnd) { tr.record(d) }

// WaitStart implements [rlock.WaitTracer].
func (tr *Tracer) WaitStart(_ context.Context, d rlock.WaitStart) { tr.record(d) }

// WaitEnd implements [rlock.WaitTracer].
func (tr *Tracer) WaitEnd(_ context.Context, d rlock.WaitEnd) { tr.record(d) }

// HoldStart implements [rlock.HoldTracer].
func (tr *Tracer) HoldStart(ctx context.Context, d rlock.HoldStart,
) (context.Context, rlock.HoldTrace) {
	tr.record(d)
	return context.WithValue(ctx, TraceKey{}, d), HoldTrace{tr, d.Owner}
}

// RenewalEnd implements [rlock.RenewalTracer].
func (tr *Tracer) RenewalEnd(d rlock.RenewalEnd) { tr.record(d) }

// RoundEnd implements [rlock.RoundTracer].
func (tr *Tracer) RoundEnd(_ context.Context, d rlock.RoundEnd) { tr.record(d) }

// NodeFailed implements [rlock.NodeTracer].
func (tr *Tracer) NodeFailed(d rlock.NodeFailed) { tr.record(d) }

// HoldTrace is the trace of a hold that a [Tracer] returns.
type HoldTrace struct {
	tracer *Tracer
	Owner  string
}

// HoldEnd implements [rlock.HoldTrace].
func (ht HoldTrace) HoldEnd(d rlock.HoldEnd) { ht.tracer.record(d) }
