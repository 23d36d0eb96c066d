package watchdog

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/internal/wait"
)

// round is the pending work of one group. Watchdog.mu guards it.
type round struct {
	group   string
	running bool     // a goroutine works on it
	queue   []*batch // by due; never empty unless running
}

// batch is a set of leases that one call renews.
type batch struct {
	leases []*Lease
	due    time.Duration // when it may be renewed, counted from epoch
	tries  wait.Backoff  // between failed calls
}

// errNoOutcome is the error of a call that left leases unknown and returned no error.
var errNoOutcome = errors.New("watchdog: Renew gave no outcome for some leases")

// add queues b by its due time, behind batches that are due at the same time. A failed batch is
// then behind all of this tick and before those of later ticks: neither starves the other.
func (r *round) add(b *batch) {
	i := len(r.queue)
	for i > 0 && r.queue[i-1].due > b.due {
		i--
	}
	r.queue = slices.Insert(r.queue, i, b)
}

// prune drops the leases that are not to be renewed at t, because that would keep others out for
// nothing. It reports whether none is left.
func (b *batch) prune(t time.Duration) (empty bool) {
	b.leases = slices.DeleteFunc(b.leases, func(l *Lease) bool {
		l.queued = l.renew && l.live(t)
		return !l.queued
	})
	return len(b.leases) == 0
}

// delay draws b's pause after a failure: below lease/300, later lease/30, or 5 ms if that is more.
func (b *batch) delay(lease time.Duration) time.Duration {
	const shortest = 5 * time.Millisecond
	return b.tries.Within(max(shortest, lease/300), max(shortest, lease/30))
}

// run makes the calls of one round, one after the other, until no batch is due.
func (w *Watchdog) run(r *round) {
	for b := w.take(r); b != nil; b = w.take(r) {
		w.call(r, b)
	}
}

// take takes the next due batch off the queue. If there is none, the round stops running
// and take returns nil. Both happen under one lock, so that no batch is queued unseen.
func (w *Watchdog) take(r *round) *batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := now()
	for w.ctx.Err() == nil && len(r.queue) > 0 && r.queue[0].due <= t {
		b := r.queue[0]
		r.queue = slices.Delete(r.queue, 0, 1)
		if !b.prune(t) {
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

// call renews b, reports the leases that are gone, and queues those with an unknown outcome for a
// retry. The number of retries is not limited: b ends when the last of its leases was renewed,
// removed or lost.
func (w *Watchdog) call(r *round, b *batch) {
	start := now() // a lease is counted from before the request, see the package comment
	ctx, cancel := context.WithTimeout(w.ctx, w.options.CallTimeout)
	outcomes, err := w.options.Renew(ctx, r.group, b.leases)
	cancel()

	w.mu.Lock()
	t := now()
	deadline := Deadline(epoch.Add(start), w.options.Lease)
	var gone, unknown, missed []*Lease
	for i, l := range b.leases {
		l.queued = i >= len(outcomes) || outcomes[i] == Unknown
		switch {
		case l.queued:
			unknown = append(unknown, l)
		case outcomes[i] == Gone:
			gone = append(gone, l)
		case outcomes[i] == Stopped:
			if l.stage == watched {
				w.setRenew(l, false)
			}
		case l.live(t):
			w.extend(l, deadline)
			// If it was in flight while a tick queued the others, the next tick could be too late.
			l.queued = l.renew && start < w.lastTick
			if l.queued {
				missed = append(missed, l)
			}
		}
	}
	if len(missed) > 0 {
		r.add(&batch{leases: missed, due: t})
	}
	if len(unknown) > 0 {
		b.leases, b.due = unknown, t+b.delay(w.options.Lease)
		r.add(b)
	}
	w.mu.Unlock()

	for _, l := range gone {
		w.lose(l, ErrGone)
	}
	if len(unknown) > 0 && w.ctx.Err() == nil && w.options.OnFailure != nil {
		w.options.OnFailure(r.group, len(unknown), cmp.Or(err, errNoOutcome))
	}
}

// lose ends the watch of l and reports why, unless it has ended already. It ends the watch
// immediately before the callback, so that a Remove before the callback is in time.
func (w *Watchdog) lose(l *Lease, reason error) {
	if w.ctx.Err() == nil && w.Remove(l) && l.OnLost != nil {
		l.OnLost(l, reason)
	}
}
