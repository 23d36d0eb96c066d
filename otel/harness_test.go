package holdfastotel_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"holdfast/internal/redistest"
	holdfastotel "holdfast/otel"
	"holdfast/rlock"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// signals is a Tracer and what it made.
type signals struct {
	*holdfastotel.Tracer
	reader *metric.ManualReader
	spans  *tracetest.SpanRecorder
	meters *metric.MeterProvider
	traces *trace.TracerProvider
}

func newSignals(options ...holdfastotel.Option) *signals {
	s := &signals{reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	s.meters = metric.NewMeterProvider(metric.WithReader(s.reader))
	s.traces = trace.NewTracerProvider(trace.WithSpanProcessor(s.spans))
	s.Tracer = holdfastotel.New(append([]holdfastotel.Option{
		holdfastotel.WithMeterProvider(s.meters),
		holdfastotel.WithTracerProvider(s.traces),
	}, options...)...)
	return s
}

// metric returns a metric; nil if nothing was measured.
func (s *signals) metric(t testing.TB, name string) *metricdata.Metrics {
	var all metricdata.ResourceMetrics
	require.NoError(t, s.reader.Collect(context.WithoutCancel(t.Context()), &all))
	for _, scope := range all.ScopeMetrics {
		for i := range scope.Metrics {
			if scope.Metrics[i].Name == name {
				require.Equal(t, "holdfast/otel", scope.Scope.Name)
				return &scope.Metrics[i]
			}
		}
	}
	return nil
}

// histogram returns the series of a histogram, each by its attributes as text.
func (s *signals) histogram(t testing.TB, name string,
) map[string]metricdata.HistogramDataPoint[float64] {
	series := make(map[string]metricdata.HistogramDataPoint[float64])
	if m := s.metric(t, name); m != nil {
		for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
			series[text(p.Attributes)] = p
		}
	}
	return series
}

// sum returns the values of a counter by their attributes as text.
func (s *signals) sum(t testing.TB, name string) map[string]int64 {
	series := make(map[string]int64)
	if m := s.metric(t, name); m != nil {
		for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
			series[text(p.Attributes)] = p.Value
		}
	}
	return series
}

// lost returns which locks were lost. Reasons that never occurred are left out.
func (s *signals) lost(t testing.TB) map[string]int64 {
	all := s.sum(t, "holdfast.lock.lost")
	maps.DeleteFunc(all, func(_ string, n int64) bool { return n == 0 })
	return all
}

func text(set attribute.Set) string { return set.Encoded(attribute.DefaultEncoder()) }

// with returns as text the attributes of order, and more.
func with(more ...attribute.KeyValue) string {
	return text(attribute.NewSet(append(more, holdfastotel.AttrKind.String(order.Kind),
		holdfastotel.AttrServer.String(order.Server))...))
}

// ended returns the only span of a name that has ended.
func (s *signals) ended(t testing.TB, name string) trace.ReadOnlySpan {
	var found []trace.ReadOnlySpan
	for _, span := range s.spans.Ended() {
		if span.Name() == name {
			found = append(found, span)
		}
	}
	require.Len(t, found, 1, name)
	return found[0]
}

// events returns the names of the events of a span.
func events(span trace.ReadOnlySpan) (names []string) {
	for _, e := range span.Events() {
		names = append(names, e.Name)
	}
	return names
}

var order = rlock.TracedLock{Name: "order:4711", Kind: "fenced", Server: "redis:6379"}

// start, acquired and fails tell the tracer of a call.
func (s *signals) start(ctx context.Context, l rlock.TracedLock) context.Context {
	return s.AcquireStart(ctx, rlock.AcquireStart{Lock: l, Since: time.Now(),
		Wait: 2 * time.Second, Lease: rlock.Watchdog})
}

func (s *signals) acquired(ctx context.Context, l rlock.TracedLock, how rlock.How, nested bool,
) (context.Context, rlock.HoldTrace) {
	held, hold := s.HoldStart(ctx, rlock.HoldStart{Lock: l, Owner: "c:1", Token: 7, How: how,
		Nested: nested, Lease: 30 * time.Second, Renewed: true})
	s.AcquireEnd(ctx, rlock.AcquireEnd{Lock: l, How: how, Took: 3 * time.Millisecond, Requests: 2})
	return held, hold
}

func (s *signals) fails(ctx context.Context, l rlock.TracedLock, err error) {
	s.AcquireEnd(ctx, rlock.AcquireEnd{Lock: l, Err: err, Took: time.Second, Requests: 2})
}

// takes tells the tracer of a lock that is acquired.
func (s *signals) takes(ctx context.Context, l rlock.TracedLock) (context.Context,
	rlock.HoldTrace) {
	return s.acquired(s.start(ctx, l), l, rlock.Free, false)
}

// end returns the end of an acquisition.
func end(l rlock.TracedLock, err error, margin time.Duration) rlock.HoldEnd {
	return rlock.HoldEnd{Lock: l, Owner: "c:1", Err: err, Last: true, Held: 40 * time.Millisecond,
		Margin: margin, Lease: 30 * time.Second}
}
