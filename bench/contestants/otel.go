package contestants

import (
	"context"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"holdfast/bench/contest"
	holdfastotel "holdfast/otel"
	"holdfast/rlock"
)

// observed returns this library's lock with metrics and traces by OpenTelemetry. The sampler
// chooses the traces; nil means metrics only.
func observed(name, setting string, sampler sdktrace.Sampler) contest.Contestant {
	c := holdfast(name, setting, rlock.Options{})
	c.Open = func(s contest.Setup) (contest.Client, error) {
		meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
		o := &observedClient{shutdown: meters.Shutdown}
		options := []holdfastotel.Option{holdfastotel.WithMeterProvider(meters),
			holdfastotel.WithoutSpans()}
		if sampler != nil {
			spans := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler),
				sdktrace.WithBatcher(tracetest.NewNoopExporter()))
			o.shutdown = func(ctx context.Context) error {
				_ = meters.Shutdown(ctx)
				return spans.Shutdown(ctx)
			}
			options = append(options, holdfastotel.WithTracerProvider(spans))
		}
		var err error
		o.holdfastClient, err = newHoldfast(s.Addresses[0], s,
			rlock.Options{WatchdogLease: s.Period, Tracer: holdfastotel.New(options...)})
		return o, err
	}
	return c
}

// observedClient also shuts the providers down.
type observedClient struct {
	*holdfastClient
	shutdown func(context.Context) error
}

func (c *observedClient) Close() {
	c.holdfastClient.Close()
	_ = c.shutdown(context.Background()) // nothing leaves the process
}
