package holdfastotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// seconds has the bounds of buckets for what takes from less than a round trip to minutes.
var seconds = metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25,
	.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)

// parts has those for parts of a lease. Renewals are due when a third is used up.
var parts = metric.WithExplicitBucketBoundaries(.05, .1, .2, .3, .4, .5, .6, .7, .8, .9, .95, .99,
	1)

// instruments are what a Tracer measures with.
type instruments struct {
	acquire, hold, margin, utilization, round metric.Float64Histogram
	lost, renewals, handovers, nodes          metric.Int64Counter
}

// newInstruments makes the instruments. The meter returns usable ones even with an error.
func newInstruments(m metric.Meter, observe func(held, waiting observed)) *instruments {
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
	held := gauge("holdfast.lock.held", "{lock}", "Locks that are held.")
	waiting := gauge("holdfast.lock.waiting", "{call}", "Calls that wait for a lock.")
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		observe(
			func(n int64, with metric.ObserveOption) { o.ObserveInt64(held, n, with) },
			func(n int64, with metric.ObserveOption) { o.ObserveInt64(waiting, n, with) })
		return nil
	}, held, waiting)
	handle(err)
	return &instruments{
		acquire: histogram("holdfast.lock.acquire.duration", "s",
			"How long calls that want a lock take.", seconds),
		hold: histogram("holdfast.lock.hold.duration", "s",
			"How long locks are held.", seconds),
		margin: histogram("holdfast.lock.deadline.margin", "s",
			"What is left until the deadline at a renewal or at the end of a hold.", seconds),
		utilization: histogram("holdfast.lock.lease.utilization", "1",
			"Which part of the lease is used up at a renewal or at the end of a hold.", parts),
		round: histogram("holdfast.redlock.round.duration", "s",
			"How long rounds of requests to the nodes of a RedLock take.", seconds),
		lost: counter("holdfast.lock.lost", "{lock}",
			"Locks that were lost while they were held."),
		renewals: counter("holdfast.lock.renewal.failures", "{renewal}",
			"Renewals of a lease that failed, and are tried again."),
		handovers: counter("holdfast.lock.handovers", "{handover}",
			"Locks that a release gave to the next that waited."),
		nodes: counter("holdfast.redlock.node.failures", "{failure}",
			"What nodes of RedLocks did not do."),
	}
}

// observed gets the present value of a gauge.
type observed func(n int64, with metric.ObserveOption)

func handle(err error) {
	if err != nil {
		otel.Handle(err)
	}
}
