package holdfastotel

import "go.opentelemetry.io/otel/attribute"

// The attributes of metrics and spans.
const (
	// AttrKind is the kind of lock: rlock.TracedLock.Kind.
	AttrKind = attribute.Key("holdfast.lock.kind")
	// AttrServer is the server: rlock.TracedLock.Server. Left out if it has no name, and of the spans
	// of holds that were released.
	AttrServer = attribute.Key("holdfast.server")
	// AttrName is the name of the lock on spans, and what [WithNameFunc] makes of it on metrics.
	AttrName = attribute.Key("holdfast.lock.name")
	// AttrOutcome is how something ended: a call "acquired", "not_acquired", "canceled" or "failed", a
	// hold "released", "left", "lost", "closed" or "unconfirmed", a round of a RedLock "quorum" or
	// "no_quorum". Left out of spans that ended "acquired" or "released".
	AttrOutcome = attribute.Key("holdfast.lock.outcome")
	// AttrHow is how a lock was acquired: "free", "handed_over", "granted", "reentered", "attached".
	AttrHow = attribute.Key("holdfast.lock.how")
	// AttrErrorType is why something failed: see [ErrorType].
	AttrErrorType = attribute.Key("error.type")
	// AttrScope is "in_process" for a lock that was handed over to a waiter of the same client,
	// "between_processes" for one of another client.
	AttrScope = attribute.Key("holdfast.handover.scope")
	// AttrOperation is what a node of a RedLock did not do: "acquire", "extend", "release" or "hold".
	AttrOperation = attribute.Key("holdfast.redlock.operation")
)

// The attributes of spans only. Durations are in seconds.
const (
	// AttrWait is the longest wait of a call. Left out if it has no limit.
	AttrWait = attribute.Key("holdfast.lock.wait")
	// AttrLease is the lease. Left out of a call with the watchdog.
	AttrLease = attribute.Key("holdfast.lock.lease")
	// AttrRequests is how often Redis was asked; for a RedLock the number of rounds.
	AttrRequests = attribute.Key("holdfast.lock.requests")
	// AttrOwner is the owner as others see it.
	AttrOwner = attribute.Key("holdfast.lock.owner")
	// AttrHolder is the owner that had the lock when a call gave up: AttrOwner of its "lock hold".
	AttrHolder = attribute.Key("holdfast.lock.holder")
	// AttrToken is the fencing token, if there is one.
	AttrToken = attribute.Key("holdfast.lock.token")
	// AttrRound is the number of a round of a RedLock, from 1.
	AttrRound = attribute.Key("holdfast.redlock.round")
	// AttrGranted is how many nodes granted the lock in a round.
	AttrGranted = attribute.Key("holdfast.redlock.granted")
	// AttrWant is how many nodes are needed: the quorum.
	AttrWant = attribute.Key("holdfast.redlock.want")
	// AttrRefused has the nodes that did not grant it, each with its error type, such as
	// "10.0.0.7:6379 not_acquired".
	AttrRefused = attribute.Key("holdfast.redlock.refused")
)

// Values of attributes that metrics, spans and decisions share.
const (
	acquired    = "acquired"
	notAcquired = "not_acquired"
	canceled    = "canceled"
	failed      = "failed"

	released    = "released"
	left        = "left"
	lost        = "lost"
	closed      = "closed"
	unconfirmed = "unconfirmed"

	quorum   = "quorum"
	noQuorum = "no_quorum"
)
