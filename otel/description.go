package holdfastotel

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"holdfast/rlock"
)

// description is what the attributes of a span will say. They are set at once, because one by one
// would be slow. A call that acquires a lock, and its hold, have 8 at most, because more would be
// slow, too.
type description struct {
	all [9]attribute.KeyValue
	n   int
}

// descriptions has those that are free again: spans copy their attributes.
var descriptions = sync.Pool{New: func() any { return new(description) }}

// describe begins the description of a span about a lock.
func describe(l rlock.TracedLock) *description {
	d := descriptions.Get().(*description)
	d.n = 0
	d.add(AttrName.String(l.Name))
	d.add(AttrKind.String(l.Kind))
	return d
}

// add adds an attribute.
func (d *description) add(a attribute.KeyValue) {
	d.all[d.n] = a
	d.n++
}

// failure adds an outcome other than success, and why.
func (d *description) failure(r result) {
	d.add(AttrOutcome.String(r.outcome))
	if r.errorType != "" {
		d.add(AttrErrorType.String(r.errorType))
	}
}

// set sets the attributes of the span. The description must not be used afterwards.
func (d *description) set(span trace.Span) {
	span.SetAttributes(d.all[:d.n]...)
	descriptions.Put(d)
}
