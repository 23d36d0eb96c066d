package textfile

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/internal/errortype"
	"holdfast/internal/printable"
	"holdfast/rlock"
)

// Metrics collects what happens to one lock, and writes it to a file in the background. It is a
// tracer of the lock's clients. Its methods are safe for concurrent use. A nil Metrics collects
// nothing, but is no tracer.
type Metrics struct {
	path, name string
	warn       func(error)
	changed    chan struct{}
	done       chan struct{}

	mu       sync.Mutex
	add, set samples // not written yet; guarded by mu
	warned   bool    // guarded by mu
	closed   bool    // guarded by mu
}

// New returns the metrics of the lock with this name. If the file cannot be written, it calls warn
// once. Call Close at the end.
func New(path, name string, warn func(error)) *Metrics {
	m := &Metrics{path: path, name: printable.Text(name), warn: warn,
		changed: make(chan struct{}, 1), done: make(chan struct{}), add: samples{}, set: samples{}}
	go func() {
		defer close(m.done)
		for range m.changed {
			m.write()
		}
	}()
	return m
}

// Close writes what is left. What comes later is not written.
func (m *Metrics) Close() {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.closed = true
	close(m.changed)
	m.mu.Unlock()
	<-m.done
	m.write()
}

// write changes the file.
func (m *Metrics) write() {
	m.mu.Lock()
	add, set := m.add, m.set
	m.add, m.set = samples{}, samples{}
	m.mu.Unlock()
	if len(add)+len(set) == 0 {
		return
	}
	err := update(m.path, add, set)
	if err == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for series, value := range add { // for the next time
		m.add[series] += value
	}
	for series, value := range set {
		if _, newer := m.set[series]; !newer {
			m.set[series] = value
		}
	}
	if !m.warned {
		m.warned = true
		m.warn(err)
	}
}

// change changes the samples, and has them written.
func (m *Metrics) change(f func(add, set samples)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	f(m.add, m.set)
	select {
	case m.changed <- struct{}{}:
	default: // it will be written anyway
	}
}

// of returns the labels of a lock.
func (m *Metrics) of(l rlock.TracedLock) labels {
	return labels{"holdfast_lock_kind", l.Kind, "holdfast_server", l.Server,
		"holdfast_lock_name", m.name}
}

// run returns the labels of the metrics of a run.
func (m *Metrics) run() labels { return labels{"holdfast_lock_name", m.name} }

// Unreachable records that the lock was not asked for, because there was no connection.
func (m *Metrics) Unreachable(l rlock.TracedLock, err error, took time.Duration) {
	is := errortype.Of(err)
	if is == errortype.Other && connect.Passes(err) {
		is = "no_connection"
	}
	m.change(func(add, _ samples) { m.acquired(add, l, "failed", "", is, took) })
}

// Acquired records that the lock was acquired.
func (m *Metrics) Acquired() {
	m.change(func(_, set samples) { set[m.run().series(runAcquired)] = timestamp() })
}

// Began records that the command begins. Until its first success, the time of the last one is 0, so
// that an alert on that time also finds a job that never succeeds.
func (m *Metrics) Began() {
	m.Acquired()
	m.change(func(add, _ samples) { add[m.run().series(runSuccess)] += 0 })
}

// Ended records how the command ended.
func (m *Metrics) Ended(status int, took time.Duration) {
	m.change(func(_, set samples) {
		set[m.run().series(runDuration)] = took.Seconds()
		set[m.run().series(runStatus)] = float64(status)
		if status == 0 {
			set[m.run().series(runSuccess)] = timestamp()
		}
	})
}

// timestamp returns the time in seconds since 1970.
func timestamp() float64 { return float64(time.Now().UnixMilli()) / 1000 }

// acquired adds the end of an acquisition.
func (m *Metrics) acquired(add samples, l rlock.TracedLock, outcome, how, errorType string,
	took time.Duration,
) {
	add.observe(acquireDuration, m.of(l).with("holdfast_lock_outcome", outcome,
		"holdfast_lock_how", how, "error_type", errorType), took.Seconds())
	for _, reason := range []string{"expired", "gone"} {
		add[m.of(l).with("error_type", reason).series(lost)] += 0 // increase() misses a first value of 1
	}
}

// AcquireStart implements [rlock.Tracer].
func (*Metrics) AcquireStart(ctx context.Context, _ rlock.AcquireStart) context.Context {
	return ctx
}

// AcquireEnd implements [rlock.Tracer].
func (m *Metrics) AcquireEnd(ctx context.Context, d rlock.AcquireEnd) {
	outcome, how, is := "failed", "", errortype.Of(d.Err)
	switch {
	case d.Err == nil:
		outcome, how = "acquired", d.How.String()
		if d.How == rlock.HandedOver {
			how = "handed_over"
		}
	case ctx.Err() != nil && errors.Is(d.Err, ctx.Err()):
		outcome = "canceled"
	case errors.Is(d.Err, rlock.ErrNotAcquired):
		outcome = "not_acquired"
	}
	m.change(func(add, _ samples) { m.acquired(add, d.Lock, outcome, how, is, d.Took) })
}

// HoldStart implements [rlock.HoldTracer].
func (m *Metrics) HoldStart(ctx context.Context, d rlock.HoldStart) (context.Context,
	rlock.HoldTrace) {
	m.change(func(_, set samples) { set[m.of(d.Lock).series(held)] = 1 })
	return ctx, m
}

// HoldEnd implements [rlock.HoldTrace].
func (m *Metrics) HoldEnd(d rlock.HoldEnd) {
	outcome, is := "unconfirmed", errortype.Of(d.Err)
	switch {
	case d.Err == nil:
		outcome = "released"
	case errors.Is(d.Err, rlock.ErrLost):
		outcome = "lost"
	case errors.Is(d.Err, rlock.ErrClosed):
		outcome = "closed"
	}
	of := m.of(d.Lock)
	m.change(func(add, set samples) {
		set[of.series(held)] = 0
		add.observe(holdDuration, of.with("holdfast_lock_outcome", outcome, "error_type", is),
			d.Held.Seconds())
		if outcome == "lost" {
			add[of.with("error_type", is).series(lost)]++
		}
		leaseLeft(add, of, d.Margin, d.Lease)
	})
}

// RenewalEnd implements [rlock.RenewalTracer].
func (m *Metrics) RenewalEnd(d rlock.RenewalEnd) {
	m.change(func(add, _ samples) {
		leaseLeft(add, m.of(d.Lock), d.Margin, d.Lease)
		if d.Err != nil {
			add[m.of(d.Lock).with("error_type", errortype.Of(d.Err)).series(renewalFailures)]++
		}
	})
}

// leaseLeft adds what is left of a lease.
func leaseLeft(add samples, of labels, margin, lease time.Duration) {
	if lease > 0 {
		add.observe(utilization, of, 1-min(max(margin.Seconds(), 0)/lease.Seconds(), 1))
	}
}

// RoundEnd implements [rlock.RoundTracer].
func (m *Metrics) RoundEnd(_ context.Context, d rlock.RoundEnd) {
	outcome := "quorum"
	if d.Granted < d.Want {
		outcome = "no_quorum"
	}
	of := labels{"holdfast_lock_outcome", outcome, "holdfast_lock_name", m.name}
	m.change(func(add, _ samples) { add.observe(roundDuration, of, d.Took.Seconds()) })
}

// NodeFailed implements [rlock.NodeTracer].
func (m *Metrics) NodeFailed(d rlock.NodeFailed) {
	of := labels{"holdfast_server", d.Server, "holdfast_redlock_operation", d.Operation,
		"error_type", errortype.Of(d.Err), "holdfast_lock_name", m.name}
	m.change(func(add, _ samples) { add[of.series(nodeFailures)]++ })
}
