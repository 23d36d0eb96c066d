package holdfastotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"holdfast/rlock"
)

// call is the context of a call whose span is recorded.
type call struct {
	context.Context
	tracer *Tracer
	span   trace.Span
	caller trace.Span // what the caller's context had
	wait   time.Duration
	lease  time.Duration
	queued time.Time // when the latest wait began
}

// callKey is the key of a call. A rlock.MultiTracer may have several Tracers, each with its own.
type callKey struct{ of *Tracer }

// Value implements [context.Context].
func (c *call) Value(key any) any {
	if key == (callKey{c.tracer}) {
		return c
	}
	return c.Context.Value(key)
}

// callOf returns the call that ctx belongs to; nil if it is over, or not recorded. The context of a
// hold has the one that acquired it, which is over.
func (t *Tracer) callOf(ctx context.Context) *call {
	if c, _ := ctx.Value(callKey{t}).(*call); c != nil && c.span.IsRecording() {
		return c
	}
	return nil
}

// unrecorded returns the context of a call without a span: ctx, without the call that it is inside
// of, as that for a part of a MultiLock is.
func (t *Tracer) unrecorded(ctx context.Context) context.Context {
	if t.callOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, callKey{t}, (*call)(nil))
}

// AcquireStart implements [rlock.Tracer].
func (t *Tracer) AcquireStart(ctx context.Context, d rlock.AcquireStart) context.Context {
	caller := trace.SpanFromContext(ctx)
	if t.spans == nil {
		return ctx
	}
	if unsampled(caller) {
		return t.unrecorded(ctx)
	}
	started, span := t.spans.Start(ctx, "lock acquire", trace.WithTimestamp(d.Since))
	if !span.IsRecording() {
		if caller.SpanContext().IsValid() {
			return t.unrecorded(ctx)
		}
		return started // what the call causes is not sampled either
	}
	if whole := t.callOf(ctx); whole != nil {
		caller = whole.caller // d.Lock is a part of a MultiLock
	}
	return &call{Context: started, tracer: t, span: span, caller: caller, wait: d.Wait,
		lease: time.Duration(d.Lease)}
}

// unsampled reports whether the sampler of this process has left the trace out already. To ask it
// again for each lock would cost half as much as all metrics of the lock.
func unsampled(caller trace.Span) bool {
	c := caller.SpanContext()
	return c.IsValid() && !c.IsRemote() && !c.IsSampled() && !caller.IsRecording()
}

// AcquireEnd implements [rlock.Tracer].
func (t *Tracer) AcquireEnd(ctx context.Context, d rlock.AcquireEnd) {
	s, r, measured := t.of(d.Lock), acquiredAs(ctx, d), exemplar(ctx)
	s.acquire.Record(measured, d.Took.Seconds(), s.ended(r)...)
	switch d.How {
	case rlock.HandedOver:
		s.handovers.Add(measured, 1, s.inProcess...)
	case rlock.Granted:
		s.handovers.Add(measured, 1, s.granted...)
	}
	if c := t.callOf(ctx); c != nil {
		c.end(d, r)
	}
}

// end ends the span of the call.
func (c *call) end(d rlock.AcquireEnd, r result) {
	if d.How == rlock.HandedOver || d.How == rlock.Granted {
		c.span.AddEvent(d.How.String())
	}
	about := describe(d.Lock)
	if d.Lock.Server != "" {
		about.add(AttrServer.String(d.Lock.Server))
	}
	about.add(AttrRequests.Int(d.Requests))
	if c.wait != rlock.Forever {
		about.add(AttrWait.Float64(c.wait.Seconds()))
	}
	if c.lease > 0 {
		about.add(AttrLease.Float64(c.lease.Seconds()))
	}
	if d.Err != nil {
		about.failure(r)
		var held *rlock.HeldError
		if errors.As(d.Err, &held) && held.Owner != "" {
			about.add(AttrHolder.String(held.Owner))
		}
	} else {
		about.add(AttrHow.String(r.how))
	}
	about.set(c.span)
	if r.outcome == failed {
		c.span.SetStatus(codes.Error, d.Err.Error())
	}
	c.span.End()
}

// acquiredAs returns how a call ended.
func acquiredAs(ctx context.Context, d rlock.AcquireEnd) result {
	if d.Err == nil {
		return result{outcome: acquired, how: howOf(d.How)}
	}
	ended := ctx.Err()
	switch {
	case ended != nil && (errors.Is(d.Err, ended) || errors.Is(d.Err, context.Cause(ctx))):
		return result{outcome: canceled, errorType: ErrorType(ended)}
	case errors.Is(d.Err, rlock.ErrNotAcquired) && !errors.Is(d.Err, rlock.ErrUpgrade) &&
		!errors.Is(d.Err, rlock.ErrDeadlock): // those two are mistakes: waiting would not help
		return result{outcome: notAcquired, errorType: ErrorType(d.Err)}
	}
	return result{outcome: failed, errorType: ErrorType(d.Err)}
}

// howOf returns a way to acquire a lock as the value of an attribute.
func howOf(h rlock.How) string {
	if h == rlock.HandedOver {
		return "handed_over"
	}
	return h.String()
}

// WaitStart implements [rlock.WaitTracer].
func (t *Tracer) WaitStart(ctx context.Context, d rlock.WaitStart) {
	t.of(d.Lock).waiting.Add(1)
	if c := t.callOf(ctx); c != nil {
		c.queued = time.Now()
		c.span.AddEvent("queued", trace.WithTimestamp(c.queued))
	}
}

// WaitEnd implements [rlock.WaitTracer].
func (t *Tracer) WaitEnd(ctx context.Context, d rlock.WaitEnd) {
	t.of(d.Lock).waiting.Add(-1)
	if c := t.callOf(ctx); c != nil && !d.BecameHead.IsZero() {
		c.span.AddEvent("head", trace.WithTimestamp(later(d.BecameHead, c.queued)))
	}
}

// later returns the later of two times: a call may have been the first of its process before it was
// found that it has to wait.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
