package holdfastotel

import (
	"sync"

	"go.opentelemetry.io/otel/trace"

	"holdfast/rlock"
)

// scope is the name of the instrumentation: the import path.
const scope = "holdfast/otel"

// Tracer makes metrics and spans of what it hears of locks. Make it with [New]. It may serve
// several clients, and is safe for concurrent use. It starts no goroutine.
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

// New returns a Tracer for rlock.Options.Tracer. One for all clients of a process will do: its
// provider keeps it as long as it lives. Errors go to OpenTelemetry's error handler.
func New(opts ...Option) *Tracer {
	o := newOptions(opts)
	t := &Tracer{name: o.name}
	if o.tracers != nil {
		t.spans = o.tracers.Tracer(scope)
	}
	t.instruments = newInstruments(o.meters.Meter(scope), t.observe)
	return t
}

// observe tells what is held and waited for at present.
func (t *Tracer) observe(held, waiting observed) {
	for _, s := range t.series.all() {
		held(s.held.Load(), s.gauge)
		waiting(s.waiting.Load(), s.gauge)
	}
}
