package watchdog

import (
	"math/rand/v2"
	"slices"
	"time"
)

// schedule is the one goroutine that looks at the clock. It reports deadlines, and it starts the
// rounds, which do the work that can take long.
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

// wakeBy makes sure that the scheduler looks again at t at the latest. The caller holds mu.
func (w *Watchdog) wakeBy(t time.Duration) {
	if t >= w.armed {
		return
	}
	w.armed = t
	select {
	case w.wake <- struct{}{}:
	default: // it has been told and has not looked yet
	}
}

// reportExpired reports the leases whose deadline has come. It takes them out one by one, each
// immediately before its callback, so that a Remove which comes before the callback is in time.
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

// plan ticks if it is time, starts the rounds that have a batch due, and returns when to look
// again.
func (w *Watchdog) plan() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()

	t := now()
	switch {
	case w.renewable > 0 && w.nextTick <= t:
		w.tick(t)
	case w.renewable > 0 && w.nextEarly <= t:
		w.lineUp(t, func(l *Lease) bool { return l.until()-t < w.short() })
	}
	next := never
	for _, r := range w.rounds {
		switch {
		case r.running: // and looks at its line itself
		case r.line[0].due > t:
			next = min(next, r.line[0].due)
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

// tick puts every renewable lease in line. The caller holds mu.
func (w *Watchdog) tick(t time.Duration) {
	w.interval = jitteredInterval(w.options.Lease)
	w.lastTick, w.nextTick = t, t+w.interval

	// A group that hangs lets nothing leave its line. What has ended must not pile up there.
	for group, r := range w.rounds {
		if r.prune(t); len(r.line) == 0 && !r.running {
			delete(w.rounds, group)
		}
	}
	w.lineUp(t, func(*Lease) bool { return true })
}

// short is what a lease has left at most that is renewed before the tick.
func (w *Watchdog) short() time.Duration { return w.options.Lease / 2 }

// hurry makes sure that a short lease, which has so much left, is renewed when a third of that is
// over. All others that are short then are renewed with it: so those that come and go quickly cost
// a call now and then. The caller holds mu.
func (w *Watchdog) hurry(t, left time.Duration) {
	w.nextEarly = min(w.nextEarly, t+left/3)
	w.wakeBy(w.nextEarly)
}

// lineUp puts those renewable leases in line that are wanted. The caller holds mu.
func (w *Watchdog) lineUp(t time.Duration, wanted func(*Lease) bool) {
	w.nextEarly = never
	due := make(map[string][]*Lease)
	for _, l := range w.deadlines {
		if l.renew && !l.inLine && wanted(l) {
			l.inLine = true
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

// jitteredInterval is the time from one tick to the next: 90 to 100 % of a third of the lease.
// Jitter only shortens, so that no lease waits for its renewal for longer than that third.
func jitteredInterval(lease time.Duration) time.Duration {
	return shortenedBy(lease/3, 10)
}

// shortenedBy is d minus a random part of it, at most the given percentage.
func shortenedBy(d time.Duration, percent int64) time.Duration {
	return d - rand.N(d/100*time.Duration(percent)+1)
}
