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

// WithMeterProvider selects the provider of metrics. The default is [otel.GetMeterProvider]. To
// turn metrics off, pass a provider of package go.opentelemetry.io/otel/metric/noop.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(o *options) { o.meters = p })
}

// WithTracerProvider selects the provider of spans. The default is [otel.GetTracerProvider].
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(o *options) { o.tracers = p })
}

// WithoutSpans turns spans off. Exemplars of metrics then name the spans of callers.
func WithoutSpans() Option {
	return optionFunc(func(o *options) { o.tracers = nil })
}

// WithNameFunc adds the attribute [AttrName] to metrics. The value is the result of f for the name
// of a lock, such as "order" for "order:4711". If f returns "", the attribute is left out. By
// default, only spans have names.
//
// Each value creates new series. After 200 combinations of kind, server and name, further names
// become "_OTHER". The tracer calls f a few times for each acquisition, on several goroutines, so f
// must be fast and must always return the same result for the same name.
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
