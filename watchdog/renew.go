package watchdog

import (
	"context"
	"errors"
	"time"
)

// run makes the calls of one round, one after the other, until no batch is due.
func (w *Watchdog) run(r *round) {
	for {
		b := w.take(r)
		if b == nil {
			return
		}
		// A lease is counted from before the request, see the package comment.
		start := time.Now()
		outcomes, err := w.call(r.group, b.leases)
		for _, l := range w.renewed(r, b, start, outcomes) {
			w.lose(l)
		}
		if len(b.leases) > 0 {
			w.failed(r, b, err)
		}
	}
}

// take takes the next batch that is due off the queue. If there is none, the round stops running
// and take returns nil. Both happen under one lock, so that no batch is queued unseen.
func (w *Watchdog) take(r *round) *batch {
	w.mu.Lock()
	defer w.mu.Unlock()

	t := now()
	for !w.closed && len(r.queue) > 0 && r.queue[0].due <= t {
		b := r.shift()
		// Renewing a lease that is not trusted any more would keep others out for nothing.
		if b.prune(t); len(b.leases) > 0 {
			return b
		}
	}
	r.running = false
	if len(r.queue) == 0 {
		delete(w.rounds, r.group)
	} else {
		w.wakeBy(r.queue[0].due)
	}
	return nil
}

// call makes one call of Renew. It does not hold mu.
func (w *Watchdog) call(group string, leases []*Lease) ([]Outcome, error) {
	ctx, cancel := context.WithTimeout(w.ctx, w.options.CallTimeout)
	defer cancel()

	return w.options.Renew(ctx, group, leases)
}

// failed queues what is left of b for a retry. The number of retries is not limited: b ends when
// the last of its leases was renewed, removed or lost.
func (w *Watchdog) failed(r *round, b *batch, err error) {
	if w.ctx.Err() != nil {
		return
	}
	if err == nil {
		err = errNoOutcome
	}
	w.options.OnFailure(r.group, len(b.leases), err)

	w.mu.Lock()
	defer w.mu.Unlock()

	b.due = now() + backoff(w.options.Lease, b.failures)
	b.failures++
	r.add(b)
}

// errNoOutcome is the error of a call that left leases unknown and returned no error.
var errNoOutcome = errors.New("watchdog: Renew gave no outcome for some leases")

// renewed extends the deadlines of the leases that a call has renewed, and returns those that are
// gone. Leases with an unknown outcome stay in b.
func (w *Watchdog) renewed(
	r *round, b *batch, start time.Time, outcomes []Outcome,
) (gone []*Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()

	t := now()
	deadline := Deadline(start, w.options.Lease)
	missedTick := start.Sub(epoch) < w.lastTick

	var missed, unknown []*Lease
	for i, l := range b.leases {
		if i >= len(outcomes) || outcomes[i] == Unknown {
			unknown = append(unknown, l)
			continue
		}
		l.queued = false
		switch {
		case outcomes[i] == Gone:
			gone = append(gone, l)
		case l.live(t):
			w.extend(l, deadline)
			if missedTick && l.renew {
				// It was in flight while the others were queued. The next tick could be too late.
				l.queued = true
				missed = append(missed, l)
			}
		}
	}
	b.leases = unknown
	if len(missed) > 0 {
		r.add(&batch{leases: missed, due: t})
	}
	return gone
}

// lose reports that l is gone, unless its watch has ended meanwhile.
func (w *Watchdog) lose(l *Lease) {
	w.mu.Lock()
	report := !w.closed && w.end(l)
	w.mu.Unlock()

	if report && l.OnLost != nil {
		l.OnLost(ErrGone)
	}
}
