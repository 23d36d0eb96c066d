package holdfastotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option configures a [Tracer].
type Option interface{ apply(o *options) }

type options struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider // nil for no spans
	name    func(string) string  // nil for no names
}

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

// WithMeterProvider selects where metrics go. Defaults to [otel.GetMeterProvider]. For no metrics,
// pass a provider of package go.opentelemetry.io/otel/metric/noop.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(o *options) { o.meters = p })
}

// WithTracerProvider selects where spans go. Defaults to [otel.GetTracerProvider].
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(o *options) { o.tracers = p })
}

// WithoutSpans makes metrics only. Their exemplars name the spans of callers.
func WithoutSpans() Option {
	return optionFunc(func(o *options) { o.tracers = nil })
}

// WithNameFunc adds the attribute [AttrName] to metrics: what f returns for the name of a lock,
// such as "order" for "order:4711". For "" there is none. Each value makes series of its own. After
// 200 combinations of kind, server and name, further names become "_OTHER". f is called a few
// times for each acquisition, concurrently, must be fast, and must return the same for the same
// name. Defaults to nil: names are on spans only.
func WithNameFunc(f func(name string) string) Option {
	return optionFunc(func(o *options) { o.name = f })
}

func newOptions(opts []Option) options {
	o := options{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, option := range opts {
		option.apply(&o)
	}
	return o
}
