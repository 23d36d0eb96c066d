// Package holdfastotel shows the locks of package rlock, and those made of them, to OpenTelemetry:
// who waits for a lock, how long it is held, what was lost, and what was close to it.
//
//	client, err := rlock.New(redis, rlock.Options{Tracer: holdfastotel.New()})
//
// That uses the global providers, which may be set later. It is a module of its own, so that
// holdfast does not depend on OpenTelemetry: go.mod needs a require and a replace for
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
// Margin and utilization are measured at each renewal, and when a lock is released or lost: what
// was left until the deadline, and which part of the lease was used up. A utilization above 0.9 was
// nearly a loss. A lock with several holds of one owner is measured once, as one acquisition.
// Losses are counted from 0 as soon as a lock of the kind is wanted, so that the first is an
// increase.
//
// The attributes are those whose names begin with Attr. None has the name of a lock, of which there
// may be millions; with [WithNameFunc] there is one with what that makes of it. The values of
// [AttrErrorType] are of a fixed set: see [ErrorType].
//
// # Spans
//
// "lock acquire" is a call that wants a lock. Its events are "queued", "head" (the caller is the
// first of its process that waits), "handed over" and "granted", and for a RedLock "round". A call
// that gave up, because others held the lock or its context ended, is no error. It names the holder
// ([AttrHolder]), by which the "lock hold" in its way is found ([AttrOwner]).
//
// "lock hold" is what was acquired, until it is released or lost, with an event "renewal failed".
// It is in the context of the hold, so what is done under the lock is inside it. It is a child of
// the caller's span, as "lock acquire" is, or of that one without a caller's; both are linked. A
// nested hold has no span.
//
// Spans get their attributes when they end, so samplers do not see them. A hold is sampled if its
// acquisition was. A caller's span that is not sampled has none of these inside.
package holdfastotel
