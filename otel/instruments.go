package holdfastotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// seconds has the bounds of buckets for durations from less than a round trip to minutes.
var seconds = metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25,
	.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)

// parts has the bounds for parts of a lease. A renewal is due when a third is used up.
var parts = metric.WithExplicitBucketBoundaries(.05, .1, .2, .3, .4, .5, .6, .7, .8, .9, .95, .99,
	1)

// instruments are what a Tracer measures with.
type instruments struct {
	acquire, hold, margin, utilization, round metric.Float64Histogram
	lost, handovers                           metric.Int64Counter
	renewalFailures, nodeFailures             metric.Int64Counter
	heldNow, waitingNow                       metric.Int64ObservableUpDownCounter
}

// newInstruments makes the instruments. The meter returns usable ones even with an error.
func newInstruments(m metric.Meter) *instruments {
	histogram := func(name, unit, what string, bounds metric.HistogramOption) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what), bounds)
		handle(err)
		return h
	}
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		handle(err)
		return c
	}
	gauge := func(name, unit, what string) metric.Int64ObservableUpDownCounter {
		g, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit),
			metric.WithDescription(what))
		handle(err)
		return g
	}
	return &instruments{
		heldNow:    gauge("holdfast.lock.held", "{lock}", "Held locks."),
		waitingNow: gauge("holdfast.lock.waiting", "{call}", "Calls waiting for a lock."),
		acquire: histogram("holdfast.lock.acquire.duration", "s",
			"Duration of calls that acquire a lock.", seconds),
		hold: histogram("holdfast.lock.hold.duration", "s",
			"Time between the acquisition and the release of a lock.", seconds),
		margin: histogram("holdfast.lock.deadline.margin", "s",
			"Time left until the deadline, at a renewal or at the end of a hold.", seconds),
		utilization: histogram("holdfast.lock.lease.utilization", "1",
			"Used part of the lease, at a renewal or at the end of a hold.", parts),
		round: histogram("holdfast.redlock.round.duration", "s",
			"Duration of a round of requests to the nodes of a RedLock.", seconds),
		lost: counter("holdfast.lock.lost", "{lock}",
			"Locks lost while they were held."),
		renewalFailures: counter("holdfast.lock.renewal.failures", "{renewal}",
			"Failed renewals of a lease. Each is tried again."),
		handovers: counter("holdfast.lock.handovers", "{handover}",
			"Releases that handed the lock over to a waiter."),
		nodeFailures: counter("holdfast.redlock.node.failures", "{failure}",
			"Requests that a node of a RedLock failed to serve."),
	}
}

// handle reports an error to OpenTelemetry's error handler.
func handle(err error) {
	if err != nil {
		otel.Handle(err)
	}
}
