package rlock

import (
	"context"
	"slices"
)

// MultiTracer returns a Tracer that tells each of tracers, in order. It skips nil ones, and returns
// nil if there are no others.
func MultiTracer(tracers ...Tracer) Tracer {
	m := multiTracer(slices.DeleteFunc(slices.Clone(tracers), func(t Tracer) bool { return t == nil }))
	switch len(m) {
	case 0:
		return nil
	case 1:
		return m[0]
	}
	return m
}

// multiTracer implements all interfaces of tracers. It tells those that implement them as well.
type multiTracer []Tracer

// tell calls f with each tracer that implements T.
func tell[T any](m multiTracer, f func(T)) {
	for _, t := range m {
		if t, ok := t.(T); ok {
			f(t)
		}
	}
}

func (m multiTracer) AcquireStart(ctx context.Context, d AcquireStart) context.Context {
	for _, t := range m {
		ctx = t.AcquireStart(ctx, d) //nolint:fatcontext // each tracer adds to it, once
	}
	return ctx
}

func (m multiTracer) AcquireEnd(ctx context.Context, d AcquireEnd) {
	for _, t := range m {
		t.AcquireEnd(ctx, d)
	}
}

func (m multiTracer) WaitStart(ctx context.Context, d WaitStart) {
	tell(m, func(t WaitTracer) { t.WaitStart(ctx, d) })
}

func (m multiTracer) WaitEnd(ctx context.Context, d WaitEnd) {
	tell(m, func(t WaitTracer) { t.WaitEnd(ctx, d) })
}

// multiTrace has the traces of one hold, in the order of the tracers; nil for one without.
type multiTrace []HoldTrace

func (m multiTracer) HoldStart(ctx context.Context, d HoldStart) (context.Context, HoldTrace) {
	traces := make(multiTrace, len(m))
	for i, t := range m {
		if t, ok := t.(HoldTracer); ok {
			ctx, traces[i] = t.HoldStart(ctx, d) //nolint:fatcontext // as above
		}
	}
	return ctx, traces
}

// HoldEnd implements [HoldTrace].
func (m multiTrace) HoldEnd(d HoldEnd) {
	for _, t := range m {
		if t != nil {
			t.HoldEnd(d)
		}
	}
}

func (m multiTracer) RenewalEnd(d RenewalEnd) {
	traces, _ := d.Hold.(multiTrace)
	for i, t := range m {
		if t, ok := t.(RenewalTracer); ok {
			d.Hold = nil
			if traces != nil {
				d.Hold = traces[i]
			}
			t.RenewalEnd(d)
		}
	}
}

func (m multiTracer) RoundEnd(ctx context.Context, d RoundEnd) {
	tell(m, func(t RoundTracer) { t.RoundEnd(ctx, d) })
}

func (m multiTracer) NodeFailed(d NodeFailed) {
	tell(m, func(t NodeTracer) { t.NodeFailed(d) })
}
