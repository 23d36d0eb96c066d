// Package holdfastotel reports metrics and spans about locks with OpenTelemetry. They show who
// waits for a lock, how long a lock is held, which locks were lost, and which locks were nearly
// lost.
//
//	client, err := rlock.New(redis, rlock.Options{Tracer: holdfastotel.New()})
//
// By default, the tracer uses the global providers of OpenTelemetry, even if your program sets them
// later. The package is a separate module, so that holdfast does not depend on OpenTelemetry. Your
// go.mod also needs a require and a replace for holdfast/otel.
//
// # Metrics
//
//	holdfast.lock.acquire.duration  histogram, s         kind, server, outcome, how or error.type
//	holdfast.lock.hold.duration     histogram, s         kind, server, outcome, error.type
//	holdfast.lock.held              up-down counter      kind, server
//	holdfast.lock.waiting           up-down counter      kind, server
//	holdfast.lock.lost              counter              kind, server, error.type
//	holdfast.lock.renewal.failures  counter              kind, server, error.type
//	holdfast.lock.handovers         counter              kind, server, scope
//	holdfast.lock.deadline.margin   histogram, s         kind, server
//	holdfast.lock.lease.utilization histogram, 0 to 1    kind, server
//	holdfast.redlock.round.duration histogram, s         outcome
//	holdfast.redlock.node.failures  counter              server, operation, error.type
//
// The tracer measures the margin and the utilization at each renewal and at the end of a hold,
// unless the program left the hold. The margin is the time that was left until the deadline. The
// utilization is the used part of the lease. A value above 0.9 means that the lock was nearly lost.
// Nested holds count as a single lock, from the first hold to the last. The counter of lost locks
// starts at 0 when a program first asks for a lock of a kind, so even the first loss is an
// increase.
//
// The attributes are the constants with the prefix Attr. Metrics do not have the names of locks,
// because there may be millions of names, unless [WithNameFunc] maps the names to a few groups.
// [AttrErrorType] has a fixed set of values. See [ErrorType].
//
// # Spans
//
// The span "lock acquire" covers a call that asks for a lock. Its events are "queued", "head" (the
// caller became the first waiter of its process), "handed over", "granted", and for a RedLock
// "round". A call is not an error if it gave up because others held the lock or because its context
// ended. Such a span names the holder in [AttrHolder]. To find the "lock hold" of that holder,
// search for the same value in [AttrOwner].
//
// The span "lock hold" lasts until the lock is released or lost. A failed renewal adds the event
// "renewal failed". The context of the hold carries the span, so your work under the lock is inside
// the span. The parent of the "lock hold" is the span of the caller, or the "lock acquire" if the
// caller has no span. The "lock acquire" and the "lock hold" link to each other. A nested hold has
// no span.
//
// Spans get their attributes when they end, so samplers cannot use them. A hold is sampled if its
// acquisition was. If the caller has a span from the same process that is not sampled, the tracer
// starts no spans.
package holdfastotel
