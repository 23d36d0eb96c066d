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
		next, reports := w.plan()
		for _, report := range reports {
			report()
		}
		timer.Reset(time.Until(epoch.Add(next)))
		select {
		case <-timer.C:
		case <-w.wake:
		case <-w.ctx.Done():
		}
	}
}

// period returns the time from one tick to the next: 90 to 100 % of a third of the lease. Jitter
// only shortens the time, so no lease waits longer than a third for its renewal.
func period(lease time.Duration) time.Duration {
	third := lease / 3
	return third - wait.Random(third/10+1)
}

// shortestPeriod returns the shortest time from one tick to the next.
func shortestPeriod(lease time.Duration) time.Duration { return lease/3 - lease/3/10 }

// expired returns a lease whose deadline has passed, or nil.
func (w *Watchdog) expired() *Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil || len(w.deadlines) == 0 || w.deadlines[0].live(time.Since(epoch)) {
		return nil
	}
	return w.deadlines[0]
}

// plan ticks if it is time, begins due calls, and returns when to call plan again, and the reports.
func (w *Watchdog) plan() (next time.Duration, reports []func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := time.Since(epoch)
	switch {
	case w.nextTick <= t:
		w.period = period(w.options.Lease)
		w.lastTick, w.nextTick = t, t+w.period
		// Leases that have ended must not pile up in the queue of a group that hangs.
		for group, r := range w.rounds {
			r.queue = slices.DeleteFunc(r.queue, func(b *batch) bool { return b.prune(t) })
			if len(r.queue)+len(r.calls) == 0 {
				delete(w.rounds, group)
			}
		}
		reports = w.findLate(t)
		w.enqueue(t, never)
	case w.nextEarly <= t:
		w.enqueue(t, w.options.Lease/2)
	}
	next = min(w.nextTick, w.nextEarly)
	for _, r := range w.rounds {
		reports = append(reports, w.repeat(r, t)...)
		next = min(next, w.begin(r, t))
	}
	if len(w.deadlines) > 0 {
		next = min(next, w.deadlines[0].until())
	}
	if w.armed > t {
		next = min(next, w.armed) // otherwise each Add of a loop of locks would wake the scheduler
	}
	w.armed = next
	return next, reports
}

// findLate returns the reports of groups with leases that have been due for about a period. It
// returns reports at most once in each period, because lost connections make ticks more frequent.
// Called with mu held, at a tick.
func (w *Watchdog) findLate(t time.Duration) (reports []func()) {
	if w.options.OnLate == nil || len(w.rounds) == 0 || t < w.nextLate {
		return nil
	}
	all := make(map[string]*Lateness)
	for _, l := range w.deadlines {
		if !l.renew {
			continue
		}
		group, _ := w.options.Group(l)
		if l.batch != nil {
			group = l.batch.group // which its calls go to
		}
		late := all[group]
		if late == nil {
			late = &Lateness{Left: never}
			all[group] = late
		}
		late.Leases++
		if b := l.batch; b != nil && !b.failed && t-b.since >= shortestPeriod(w.options.Lease) {
			late.Late++
			late.Left = min(late.Left, l.until()-t)
		}
	}
	for group, late := range all {
		if late.Late > 0 {
			w.nextLate = t + shortestPeriod(w.options.Lease)
			reports = append(reports, func() { w.options.OnLate(group, *late) })
		}
	}
	return reports
}

// enqueue queues renewable leases with less than limit left, unless they are due. Called with mu
// held.
func (w *Watchdog) enqueue(t, limit time.Duration) {
	w.nextEarly = never
	type together struct {
		group string
		split uint64
		alone *Lease
	}
	due := make(map[together][]*Lease)
	for _, l := range w.deadlines {
		if l.renew && l.batch == nil && l.until()-t < limit {
			var of together
			of.group, of.split = w.options.Group(l)
			if l.alone {
				of.alone = l
			}
			due[of] = append(due[of], l)
		}
	}
	for of, leases := range due {
		r := w.rounds[of.group]
		if r == nil {
			r = &round{group: of.group}
			w.rounds[of.group] = r
		}
		for leases := range slices.Chunk(leases, w.options.batchSize) {
			r.add(w.newBatch(leases, t, t))
		}
	}
}
