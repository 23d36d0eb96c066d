// Package holdfastotel shows the locks of package rlock, and those made of them, to OpenTelemetry: who
// waits for a lock, how long it is held, what was lost, and what was close to it.
//
//	client, err := rlock.New(redis, rlock.Options{Tracer: holdfastotel.New()})
//
// That uses the global providers, which may be set later. It is a module of its own, so that holdfast
// does not depend on OpenTelemetry.
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
// Margin and utilization are measured at each renewal, and when a lock is released or lost: what was
// left until the deadline, and which part of the lease was used up. A utilization above 0.9 was
// nearly a loss.
//
// The attributes are those whose names begin with Attr. None has the name of a lock, which may be one
// of millions; with [WithNameFunc] they have what that makes of it. The values of [AttrErrorType] are
// those of a fixed set: see [ErrorType].
//
// # Spans
//
// "lock acquire" is a call that wants a lock. Its events are "queued", "head" (the caller is the first
// of its process that waits), "handed over" and "granted", and for a RedLock "round". A lock that was
// not acquired because others held it is an expected answer, and no error.
//
// "lock hold" is what was acquired, until it is released or lost, with an event "renewal failed". Its
// context is that of the hold: what is done under the lock is inside it. It is the caller's child,
// as "lock acquire" is, or that one's if the caller has no span; both are linked. A hold that is one
// more level of another has no span of its own.
//
// Spans get their attributes after the sampler has chosen them. A hold has a span if its acquisition
// was sampled.
package holdfastotel
