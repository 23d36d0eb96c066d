package holdfastotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"holdfast/rlock"
)

// hold traces a hold inside a span that is sampled: its own, or its caller's.
type hold struct {
	series *series
	span   trace.Span
	own    bool // span is the hold's own
	token  int64
}

// HoldStart implements [rlock.HoldTracer].
func (t *Tracer) HoldStart(ctx context.Context, d rlock.HoldStart) (context.Context,
	rlock.HoldTrace) {
	s, span, own := t.of(d.Lock), trace.SpanFromContext(ctx), false
	if !d.Nested {
		s.held.Add(1)
	}
	if c := t.callOf(ctx); c != nil {
		if d.Nested {
			span = c.caller
			ctx = trace.ContextWithSpan(ctx, span)
		} else {
			ctx, span = t.startHold(ctx, c)
			own = true
		}
	}
	if !own && !span.SpanContext().IsSampled() {
		return ctx, s
	}
	return ctx, &hold{s, span, own, d.Token}
}

// startHold starts the span of a hold, and links it with that of its call.
func (t *Tracer) startHold(ctx context.Context, c *call) (context.Context, trace.Span) {
	if c.caller.SpanContext().IsValid() {
		ctx = trace.ContextWithSpan(ctx, c.caller)
	}
	ctx, span := t.spans.Start(ctx, "lock hold")
	span.AddLink(trace.Link{SpanContext: c.span.SpanContext()})
	c.span.AddLink(trace.Link{SpanContext: span.SpanContext()})
	return ctx, span
}

// HoldEnd implements [rlock.HoldTrace].
func (h *hold) HoldEnd(d rlock.HoldEnd) {
	r := endOf(d)
	h.series.end(h.context(), d, r)
	if !h.own || !h.span.IsRecording() {
		return
	}
	about := describe(d.Lock)
	about.add(AttrOwner.String(d.Owner))
	about.add(AttrLease.Float64(d.Lease.Seconds()))
	if h.token != 0 {
		about.add(AttrToken.Int64(h.token))
	}
	if r.outcome != released {
		if d.Lock.Server != "" {
			about.add(AttrServer.String(d.Lock.Server))
		}
		about.failure(r)
	}
	about.set(h.span)
	if r.outcome == lost || r.outcome == unconfirmed {
		h.span.SetStatus(codes.Error, d.Err.Error())
	}
	h.span.End()
}

// context returns a context for exemplars. The hold's own is not kept, because it keeps the hold.
func (h *hold) context() context.Context {
	return trace.ContextWithSpan(context.Background(), h.span)
}

// endOf returns how a hold ended.
func endOf(d rlock.HoldEnd) result {
	r := result{errorType: ErrorType(d.Err)}
	switch {
	case d.Err == nil && d.Left:
		r.outcome = left
	case d.Err == nil:
		r.outcome = released
	case errors.Is(d.Err, rlock.ErrLost):
		r.outcome = lost
	case errors.Is(d.Err, rlock.ErrClosed):
		r.outcome = closed
	default:
		r.outcome = unconfirmed
	}
	return r
}

// RenewalEnd implements [rlock.RenewalTracer].
func (t *Tracer) RenewalEnd(d rlock.RenewalEnd) {
	s, ctx := t.of(d.Lock), context.Background()
	h, _ := d.Hold.(*hold)
	if h != nil {
		ctx = h.context()
	}
	s.leaseLeft(ctx, d.Margin, d.Lease)
	if d.Err == nil {
		return
	}
	because := AttrErrorType.String(ErrorType(d.Err))
	s.renewalFailures.Add(ctx, 1, s.with(because))
	if h != nil && h.own {
		h.span.AddEvent("renewal failed", trace.WithAttributes(because,
			attribute.String("exception.message", d.Err.Error())))
	}
}
