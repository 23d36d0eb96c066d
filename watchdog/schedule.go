package watchdog

import (
	"math/rand/v2"
	"slices"
	"time"
)

// schedule is the goroutine that watches the clock. It reports deadlines and starts the rounds,
// which do the work that may block.
func (w *Watchdog) schedule() {
	timer := time.NewTimer(never)
	defer timer.Stop()

	for w.ctx.Err() == nil {
		w.reportExpired()
		if armed := w.plan(); armed == never {
			timer.Stop()
		} else {
			timer.Reset(time.Until(epoch.Add(armed)))
		}
		select {
		case <-timer.C:
		case <-w.wake:
		case <-w.ctx.Done():
		}
	}
}

// wakeBy wakes the scheduler at t at the latest. The caller holds mu.
func (w *Watchdog) wakeBy(t time.Duration) {
	if t >= w.armed {
		return
	}
	w.armed = t
	select {
	case w.wake <- struct{}{}:
	default: // it is signaled already
	}
}

// reportExpired reports the leases whose deadline has come. It removes each one immediately before
// its callback, so that a Remove before the callback is in time.
func (w *Watchdog) reportExpired() {
	for {
		l := w.takeExpired()
		if l == nil {
			return
		}
		if l.OnLost != nil {
			l.OnLost(ErrExpired)
		}
	}
}

func (w *Watchdog) takeExpired() *Lease {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.closed || len(w.deadlines) == 0 {
		return nil
	}
	l := w.deadlines[0]
	if l.live(now()) {
		return nil
	}
	w.end(l)
	return l
}

// plan ticks if it is time, starts the rounds that have a batch due, and returns when it is to be
// called again.
func (w *Watchdog) plan() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()

	t := now()
	switch {
	case w.renewable > 0 && w.nextTick <= t:
		w.tick(t)
	case w.renewable > 0 && w.nextEarly <= t:
		w.enqueue(t, func(l *Lease) bool { return l.until()-t < w.short() })
	}
	next := never
	for _, r := range w.rounds {
		switch {
		case r.running: // and checks its queue itself
		case r.queue[0].due > t:
			next = min(next, r.queue[0].due)
		case !w.closed:
			r.running = true
			w.goroutines.Go(func() { w.run(r) })
		}
	}
	if w.renewable > 0 {
		next = min(next, w.nextTick, w.nextEarly)
	}
	if len(w.deadlines) > 0 {
		next = min(next, w.deadlines[0].until())
	}
	w.armed = next
	return next
}

// tick queues every renewable lease. The caller holds mu.
func (w *Watchdog) tick(t time.Duration) {
	w.interval = jitteredInterval(w.options.Lease)
	w.lastTick, w.nextTick = t, t+w.interval

	// Leases that have ended must not pile up in the queue of a group that hangs.
	for group, r := range w.rounds {
		if r.prune(t); len(r.queue) == 0 && !r.running {
			delete(w.rounds, group)
		}
	}
	w.enqueue(t, func(*Lease) bool { return true })
}

// short returns the remaining time below which a lease is renewed before the tick.
func (w *Watchdog) short() time.Duration { return w.options.Lease / 2 }

// hurry schedules the renewal of a short lease for when a third of the time that it has left is
// over. All leases that are short then are renewed with it, so that many short leases share a call.
// The caller holds mu.
func (w *Watchdog) hurry(t, left time.Duration) {
	w.nextEarly = min(w.nextEarly, t+left/3)
	w.wakeBy(w.nextEarly)
}

// enqueue queues the renewable leases that are wanted and not queued yet. The caller holds mu.
func (w *Watchdog) enqueue(t time.Duration, wanted func(*Lease) bool) {
	w.nextEarly = never
	due := make(map[string][]*Lease)
	for _, l := range w.deadlines {
		if l.renew && !l.queued && wanted(l) {
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

// jitteredInterval returns the time from one tick to the next: 90 to 100 % of a third of the lease.
// Jitter only shortens, so that no lease waits for its renewal for longer than that third.
func jitteredInterval(lease time.Duration) time.Duration {
	return shortenedBy(lease/3, 10)
}

// shortenedBy returns d minus a random part of it, at most the given percentage.
func shortenedBy(d time.Duration, percent int64) time.Duration {
	return d - rand.N(d/100*time.Duration(percent)+1)
}
