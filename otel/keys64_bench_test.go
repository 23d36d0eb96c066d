package holdfastotel_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"holdfast/internal/redistest"
	holdfastotel "holdfast/otel"
	"holdfast/rlock"
)

// BenchmarkKeys64 runs the scenario keys64 of module bench: 64 goroutines with a key each and one
// client. On a busy machine compare cpu-ns/op: the processor's time in this process, without the
// server's.
func BenchmarkKeys64(b *testing.B) {
	meters := holdfastotel.WithMeterProvider(
		metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())))
	b.Run("plain", func(b *testing.B) { keys64(b, nil) })
	b.Run("metrics", func(b *testing.B) {
		keys64(b, holdfastotel.New(meters, holdfastotel.WithoutSpans()))
	})
	for _, share := range []float64{.1, 1} {
		traces := sdk.NewTracerProvider(sdk.WithBatcher(tracetest.NewNoopExporter()),
			sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(share))))
		b.Run(fmt.Sprintf("spans=%.0f%%", share*100), func(b *testing.B) {
			keys64(b, holdfastotel.New(meters, holdfastotel.WithTracerProvider(traces)))
		})
		require.NoError(b, traces.Shutdown(context.Background()))
	}
}

func keys64(b *testing.B, tracer rlock.Tracer) {
	c, err := rlock.New(redistest.Start(b).Client(b), rlock.Options{Tracer: tracer})
	require.NoError(b, err)
	defer func() { require.NoError(b, c.Close(context.Background())) }()
	const goroutines = 64
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime(b)
	for g := range goroutines {
		lock := c.NewLock(fmt.Sprintf("key:%d", g))
		wg.Go(func() {
			for i := g; i < b.N; i += goroutines {
				hold, err := lock.Lock(ctx, rlock.Watchdog)
				if err == nil {
					err = hold.Unlock(ctx)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// processorTime returns the processor's time that this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
