package holdfastotel

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"holdfast/rlock"
)

// scope is the name of the instrumentation: the import path.
const scope = "holdfast/otel"

// Tracer is an [rlock.Tracer] that reports metrics and spans. Create a Tracer with [New]. A Tracer
// is safe for concurrent use, and several clients can share it. It starts no goroutine.
type Tracer struct {
	*instruments
	spans  trace.Tracer        // nil for none
	name   func(string) string // nil for no names in metrics
	series cache[seriesKey, *series]
	naming sync.Mutex // held while a series with a new name is added
}

var (
	_ rlock.Tracer        = (*Tracer)(nil)
	_ rlock.HoldTracer    = (*Tracer)(nil)
	_ rlock.WaitTracer    = (*Tracer)(nil)
	_ rlock.RenewalTracer = (*Tracer)(nil)
	_ rlock.RoundTracer   = (*Tracer)(nil)
	_ rlock.NodeTracer    = (*Tracer)(nil)
)

// New returns a Tracer for rlock.Options.Tracer. Create a single Tracer for all clients of a
// process, because the meter provider keeps each Tracer until the provider itself ends. Errors go
// to the error handler of OpenTelemetry.
func New(opts ...Option) *Tracer {
	o := newOptions(opts)
	t := &Tracer{name: o.name}
	if o.tracers != nil {
		t.spans = o.tracers.Tracer(scope)
	}
	m := o.meters.Meter(scope)
	t.instruments = newInstruments(m)
	_, err := m.RegisterCallback(t.observe, t.heldNow, t.waitingNow)
	handle(err)
	return t
}

// observe reports what is held and waited for, whenever metrics are collected.
func (t *Tracer) observe(_ context.Context, o metric.Observer) error {
	for _, s := range t.series.all() {
		o.ObserveInt64(t.heldNow, s.held.Load(), s.gauge)
		o.ObserveInt64(t.waitingNow, s.waiting.Load(), s.gauge)
	}
	return nil
}
