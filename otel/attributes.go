package holdfastotel

import "go.opentelemetry.io/otel/attribute"

// The attributes of metrics and spans.
const (
	// AttrKind is the kind of lock, from rlock.TracedLock.Kind.
	AttrKind = attribute.Key("holdfast.lock.kind")
	// AttrServer is the server, from rlock.TracedLock.Server. The attribute is left out if the server
	// has no name, and on spans of released holds.
	AttrServer = attribute.Key("holdfast.server")
	// AttrName is the name of the lock on spans, and the result of [WithNameFunc] on metrics.
	AttrName = attribute.Key("holdfast.lock.name")
	// AttrOutcome is the outcome. A call has "acquired", "not_acquired", "canceled" or "failed". A
	// hold has "released", "left", "lost", "closed" or "unconfirmed". A round of a RedLock has
	// "quorum" or "no_quorum". Spans with "acquired" or "released" do not have the attribute.
	AttrOutcome = attribute.Key("holdfast.lock.outcome")
	// AttrHow says how a call got the lock: "free", "handed_over", "granted", "reentered" or
	// "attached".
	AttrHow = attribute.Key("holdfast.lock.how")
	// AttrErrorType says why an operation failed. See [ErrorType].
	AttrErrorType = attribute.Key("error.type")
	// AttrScope is "in_process" for a hand-over to a waiter of the same client, and
	// "between_processes" for a hand-over to a waiter of another client.
	AttrScope = attribute.Key("holdfast.handover.scope")
	// AttrOperation is the failed operation on a node of a RedLock: "acquire", "extend", "release" or
	// "hold".
	AttrOperation = attribute.Key("holdfast.redlock.operation")
)

// The attributes of spans only. Durations are in seconds.
const (
	// AttrWait is the longest wait of a call. A call without a limit does not have the attribute.
	AttrWait = attribute.Key("holdfast.lock.wait")
	// AttrLease is the lease. A call with the watchdog does not have the attribute.
	AttrLease = attribute.Key("holdfast.lock.lease")
	// AttrRequests is the number of requests to Redis, or the number of rounds of a RedLock.
	AttrRequests = attribute.Key("holdfast.lock.requests")
	// AttrOwner is the owner, in the form that other clients see.
	AttrOwner = attribute.Key("holdfast.lock.owner")
	// AttrHolder is the owner that had the lock when a call gave up. The "lock hold" of the holder has
	// the same value in [AttrOwner].
	AttrHolder = attribute.Key("holdfast.lock.holder")
	// AttrToken is the fencing token of a fenced lock.
	AttrToken = attribute.Key("holdfast.lock.token")
	// AttrRound is the number of a round of a RedLock, from 1.
	AttrRound = attribute.Key("holdfast.redlock.round")
	// AttrGranted is the number of nodes that granted the lock in a round.
	AttrGranted = attribute.Key("holdfast.redlock.granted")
	// AttrWant is the quorum, the number of nodes that a RedLock needs.
	AttrWant = attribute.Key("holdfast.redlock.want")
	// AttrRefused lists the nodes that did not grant the lock, each with its error type, such as
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
