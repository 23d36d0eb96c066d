package holdfastotel_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	holdfastotel "holdfast/otel"
	"holdfast/rlock"
)

// BenchmarkCycle measures what a tracer adds to Lock and Unlock without contention.
func BenchmarkCycle(b *testing.B) {
	b.Run("metrics", func(b *testing.B) { cycles(b.Context(), b, holdfastotel.WithoutSpans()) })
	for _, sampled := range []struct {
		name    string
		sampler sdk.Sampler
	}{
		{"0%", sdk.NeverSample()}, {"10%", sdk.TraceIDRatioBased(.1)}, {"100%", sdk.AlwaysSample()},
	} {
		traces := sdk.NewTracerProvider(sdk.WithSampler(sdk.ParentBased(sampled.sampler)),
			sdk.WithBatcher(tracetest.NewNoopExporter()))
		b.Cleanup(func() { _ = traces.Shutdown(context.Background()) })
		spans := holdfastotel.WithTracerProvider(traces)
		b.Run("spans="+sampled.name, func(b *testing.B) { cycles(b.Context(), b, spans) })
		b.Run("spans="+sampled.name+"/child", func(b *testing.B) {
			ctx, span := traces.Tracer("test").Start(b.Context(), "request")
			defer span.End()
			cycles(ctx, b, spans)
		})
	}
}

func cycles(ctx context.Context, b *testing.B, spans holdfastotel.Option) {
	t := holdfastotel.New(spans, holdfastotel.WithMeterProvider(
		metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))))
	lock := rlock.TracedLock{Name: "order:4711", Kind: "reentrant", Server: "127.0.0.1:6379"}
	b.ReportAllocs()
	for b.Loop() {
		cycle(ctx, t, lock)
	}
}

func cycle(ctx context.Context, t *holdfastotel.Tracer, lock rlock.TracedLock) {
	call := t.AcquireStart(ctx, rlock.AcquireStart{Lock: lock, Since: time.Now(),
		Wait: rlock.Forever, Lease: rlock.Watchdog})
	_, hold := t.HoldStart(call, rlock.HoldStart{Lock: lock, Owner: "0123456789abcdef:42",
		How: rlock.Free, Lease: 30 * time.Second, Renewed: true})
	t.AcquireEnd(call, rlock.AcquireEnd{Lock: lock, How: rlock.Free, Took: 100 * time.Microsecond,
		Requests: 1})
	hold.HoldEnd(rlock.HoldEnd{Lock: lock, Owner: "0123456789abcdef:42", Last: true,
		Held: 200 * time.Microsecond, Margin: 29 * time.Second, Lease: 30 * time.Second})
}
