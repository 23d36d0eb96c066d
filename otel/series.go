package holdfastotel

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"holdfast/rlock"
)

// maxSeries is from how many series on new names of a WithNameFunc share one: more than a dashboard
// can show, and with ten results of calls each not more than the 2000 at which the SDK merges what
// one instrument measures.
const maxSeries = 200

// series has the measurements of locks that metrics do not tell apart. It is also the trace of
// their holds without a span.
type series struct {
	*instruments
	seriesKey
	held, waiting atomic.Int64
	base          []attribute.KeyValue
	gauge         metric.ObserveOption
	plain         []metric.RecordOption // for what has no result
	results       cache[result, []metric.RecordOption]
	inProcess     []metric.AddOption
	granted       []metric.AddOption
}

type seriesKey struct{ kind, server, name string }

// result is how a call or a hold ended.
type result struct{ outcome, how, errorType string }

// of returns the series of a lock.
func (t *Tracer) of(l rlock.TracedLock) *series {
	k := seriesKey{kind: l.Kind, server: l.Server}
	if t.name != nil {
		k.name = t.name(l.Name)
	}
	all := t.series.all()
	if s := all[k]; s != nil {
		return s
	}
	if k.name != "" && len(all) < maxSeries {
		// Whether there is room for a name is decided once: a wait ends in the series that it began in.
		t.naming.Lock()
		defer t.naming.Unlock()
		all = t.series.all()
	}
	if k.name != "" && len(all) >= maxSeries && all[k] == nil {
		k.name = otherType
	}
	return t.series.get(k, t.newSeries)
}

func (t *Tracer) newSeries(k seriesKey) *series {
	s := &series{instruments: t.instruments, seriesKey: k}
	s.base = append(s.base, AttrKind.String(k.kind))
	if k.server != "" {
		s.base = append(s.base, AttrServer.String(k.server))
	}
	if k.name != "" {
		s.base = append(s.base, AttrName.String(k.name))
	}
	plain := s.with()
	s.gauge, s.plain = plain, []metric.RecordOption{plain}
	s.inProcess = []metric.AddOption{s.with(AttrScope.String("in_process"))}
	s.granted = []metric.AddOption{s.with(AttrScope.String("between_processes"))}
	for _, reason := range []error{rlock.ErrExpired, rlock.ErrGone} {
		s.countLoss(context.Background(), 0, ErrorType(reason)) // increase() misses a first value of 1
	}
	return s
}

// with returns an option with the attributes of the series and more.
func (s *series) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(slices.Concat(s.base, more)...))
}

// ended returns the options of a result.
func (s *series) ended(r result) []metric.RecordOption { return s.results.get(r, s.newResult) }

func (s *series) newResult(r result) []metric.RecordOption {
	more := []attribute.KeyValue{AttrOutcome.String(r.outcome)}
	if r.how != "" {
		more = append(more, AttrHow.String(r.how))
	}
	if r.errorType != "" {
		more = append(more, AttrErrorType.String(r.errorType))
	}
	return []metric.RecordOption{s.with(more...)}
}

// countLoss adds to the locks that were lost.
func (s *series) countLoss(ctx context.Context, n int64, errorType string) {
	s.lost.Add(ctx, n, s.with(AttrErrorType.String(errorType)))
}

// exemplar returns what an exemplar needs of ctx. Metrics may keep it for ever: with ctx itself
// they would keep the owner in it, and a hold of that owner that was dropped would not be noticed.
func exemplar(ctx context.Context) context.Context {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsSampled() {
		return context.Background()
	}
	return trace.ContextWithSpan(context.Background(), span)
}

// leaseLeft records what is left of a lease.
func (s *series) leaseLeft(ctx context.Context, margin, lease time.Duration) {
	margin = max(margin, 0)
	s.margin.Record(ctx, margin.Seconds(), s.plain...)
	if lease > 0 {
		used := 1 - min(float64(margin)/float64(lease), 1)
		s.utilization.Record(ctx, used, s.plain...)
	}
}

// HoldEnd implements [rlock.HoldTrace].
func (s *series) HoldEnd(d rlock.HoldEnd) { s.end(context.Background(), d, endOf(d)) }

// end records the end of a hold, if it ends the acquisition.
func (s *series) end(ctx context.Context, d rlock.HoldEnd, r result) {
	if !d.Last {
		return
	}
	s.held.Add(-1)
	s.hold.Record(ctx, d.Held.Seconds(), s.ended(r)...)
	if r.outcome == lost {
		s.countLoss(ctx, 1, r.errorType)
	}
	if r.outcome != left {
		s.leaseLeft(ctx, d.Margin, d.Lease)
	}
}
