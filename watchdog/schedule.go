package watchdog

import (
	"slices"
	"time"

	"holdfast/internal/wait"
)

// schedule reports deadlines and starts the rounds, whose work may block, until w closes.
func (w *Watchdog) schedule() {
	timer := time.NewTimer(never) // one for all passes
	defer timer.Stop()
	for w.ctx.Err() == nil {
		for l := w.expired(); l != nil; l = w.expired() {
			w.lose(l, ErrExpired)
		}
		timer.Reset(time.Until(epoch.Add(w.plan())))
		select {
		case <-timer.C:
		case <-w.wake:
		case <-w.ctx.Done():
		}
	}
}

// period returns the time from one tick to the next: 90 to 100 % of a third of the lease. Jitter
// only shortens, so that no lease waits longer than that third for its renewal.
func period(lease time.Duration) time.Duration {
	third := lease / 3
	return third - wait.Random(third/10+1)
}

// expired returns a lease whose deadline has passed, or nil.
func (w *Watchdog) expired() *Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil || len(w.deadlines) == 0 || w.deadlines[0].live(now()) {
		return nil
	}
	return w.deadlines[0]
}

// wakeBy wakes the scheduler at t at the latest. Called with mu held.
func (w *Watchdog) wakeBy(t time.Duration) {
	if t < w.armed {
		w.armed = t
		wait.Fire(w.wake)
	}
}

// plan ticks if it is time, starts the rounds with a batch due, and returns when to call it again.
func (w *Watchdog) plan() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := now()
	switch {
	case w.nextTick <= t:
		w.period = period(w.options.Lease)
		w.lastTick, w.nextTick = t, t+w.period
		// Leases that have ended must not pile up in the queue of a group that hangs.
		for group, r := range w.rounds {
			r.queue = slices.DeleteFunc(r.queue, func(b *batch) bool { return b.prune(t) })
			if len(r.queue) == 0 && !r.running {
				delete(w.rounds, group)
			}
		}
		w.enqueue(t, never)
	case w.nextEarly <= t:
		w.enqueue(t, w.options.Lease/2)
	}
	next := min(w.nextTick, w.nextEarly)
	for _, r := range w.rounds {
		switch {
		case r.running: // and checks its queue itself
		case r.queue[0].due > t:
			next = min(next, r.queue[0].due)
		case w.ctx.Err() == nil:
			r.running = true
			w.goroutines.Go(func() { w.run(r) })
		}
	}
	if len(w.deadlines) > 0 {
		next = min(next, w.deadlines[0].until())
	}
	if w.armed > t {
		next = min(next, w.armed) // or each Add of a loop that locks and unlocks would wake it
	}
	w.armed = next
	return next
}

// enqueue queues renewable leases with less than limit left, unless queued. Called with mu held.
func (w *Watchdog) enqueue(t, limit time.Duration) {
	w.nextEarly = never
	due := make(map[string][]*Lease)
	for _, l := range w.deadlines {
		if l.renew && !l.queued && l.until()-t < limit {
			l.queued = true
			due[l.Group] = append(due[l.Group], l)
		}
	}
	for group, leases := range due {
		r := w.rounds[group]
		if r == nil {
			r = &round{group: group}
			w.rounds[group] = r
		}
		for leases := range slices.Chunk(leases, w.options.BatchSize) {
			r.add(&batch{leases: leases, due: t})
		}
	}
}
