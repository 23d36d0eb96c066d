// Package holdfastotel makes metrics and spans of locks with OpenTelemetry: who waits for a lock,
// how long it is held, what was lost, and what was nearly lost.
//
//	client, err := rlock.New(redis, rlock.Options{Tracer: holdfastotel.New()})
//
// That uses the global providers, which may be set later. The package is a module of its own, so
// that holdfast does not depend on OpenTelemetry: go.mod needs a require and a replace for
// holdfast/otel, too.
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
// Margin and utilization are measured at each renewal, and at the end of a hold that was not left:
// what was left until the deadline, and which part of the lease was used up. A utilization above
// 0.9 was nearly a loss. Nested holds count as one lock, which ends with the last of them. Losses
// are counted from 0 as soon as a lock of the kind is wanted, so that the first is an increase.
//
// The attributes are the constants that begin with Attr. Metrics have no names of locks, because
// there may be millions, unless [WithNameFunc] makes few of them. [AttrErrorType] has a fixed set
// of values: see [ErrorType].
//
// # Spans
//
// "lock acquire" is a call that wants a lock. Its events are "queued", "head" (the caller became
// the first in its process to wait), "handed over" and "granted", and for a RedLock "round". A call
// that gave up, because others held the lock or because its context ended, is not an error. It
// names the holder ([AttrHolder]), by which the "lock hold" in its way is found ([AttrOwner]).
//
// "lock hold" lasts until the lock is released or lost. It has an event "renewal failed". The
// context of the hold carries it, so that what is done under the lock is inside it. Its parent is
// the caller's span, as that of "lock acquire", or without one "lock acquire" itself. The two are
// linked. A nested hold has no span.
//
// Spans get their attributes when they end, so samplers do not see them. A hold is sampled if its
// acquisition was. Inside a caller's span that is not sampled there are none.
package holdfastotel
