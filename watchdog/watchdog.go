package watchdog

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/internal/wait"
)

// Watchdog renews leases and reports lost leases. A Watchdog serves any number of leases with a
// single goroutine, plus a goroutine for each call of Renew in flight. All methods are safe for
// concurrent use. Only Close waits for calls of Renew.
type Watchdog struct {
	options Options // with defaults; constant

	ctx        context.Context // ends when the watchdog closes, while mu is held
	cancel     context.CancelFunc
	goroutines sync.WaitGroup // Go is called only while mu is held and before ctx ended
	wake       chan struct{}  // capacity 1; wakes the scheduler after armed became earlier

	mu        sync.Mutex        // guards the fields below, and the unexported fields of the leases
	deadlines deadlines         // every watched lease
	renewable int               // number of leases to renew
	rounds    map[string]*round // the groups that have a batch waiting or in flight
	lastTick  time.Duration     // when the last tick was
	nextTick  time.Duration     // when the next tick is; never while renewable is 0
	nextEarly time.Duration     // when short leases are renewed before the tick, or never
	nextLate  time.Duration     // when OnLate may be called again
	period    time.Duration     // from the start of ticking, or from a tick, to the next tick

	// armed is when the scheduler wakes by itself, at the latest for the next thing to do. If that
	// thing was removed, waking for nothing is cheaper than setting a timer at every removal.
	armed time.Duration
}

// New starts a watchdog, which [Watchdog.Close] stops. New panics if an option is missing or
// invalid.
func New(o Options) *Watchdog {
	switch {
	case o.Lease < time.Millisecond:
		panic("watchdog: Options.Lease must be at least 1ms, it is " + o.Lease.String())
	case o.Renew == nil:
		panic("watchdog: Options.Renew is missing")
	}
	if o.Group == nil {
		o.Group = func(*Lease) (group string, split uint64) { return "", 0 }
	}
	o.batchSize = cmp.Or(o.batchSize, 100)
	o.callTimeout = cmp.Or(o.callTimeout, o.Lease/6)
	t := time.Since(epoch)
	w := &Watchdog{options: o, wake: make(chan struct{}, 1), rounds: make(map[string]*round),
		lastTick: t, // a renewal that starts after this has missed no tick
		nextTick: never, nextEarly: never, nextLate: t, armed: never, period: period(o.Lease)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.goroutines.Go(w.schedule)
	return w
}

// Add starts to watch l, with a deadline from [Deadline]. With renew, the watchdog renews l at each
// tick. Without renew, the watchdog only watches the deadline. If the deadline has passed, another
// goroutine reports l at once. Add panics if l was added before, even after Remove, because a late
// reply would count for the new watch.
func (w *Watchdog) Add(l *Lease, deadline time.Time, renew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.stage != unwatched {
		panic("watchdog: a lease was added twice")
	}
	l.stage = watched
	until := deadline.Sub(epoch)
	l.deadline.Store(int64(until))
	w.deadlines = append(w.deadlines, l)
	w.deadlines.place(l, len(w.deadlines)-1)
	// If Lease/2 is left at the next tick, the lease is not short, and Add need not read the clock.
	if renew && w.setRenew(l, true) && until-w.nextTick < w.options.Lease/2 {
		t := time.Since(epoch)
		if left := until - t; left < w.options.Lease/2 {
			// The early renewal takes all leases that are short by then, so that they share a call.
			w.nextEarly = min(w.nextEarly, t+left/3)
			w.wakeBy(w.nextEarly)
		}
	}
	w.wakeBy(until)
}

// Extend moves the deadline of l to deadline, after another request has extended the lease. Extend
// does nothing if the current deadline is later or has passed, or if l is not watched. A lost lease
// stays lost. To learn the result, check [Lease.Deadline].
func (w *Watchdog) Extend(l *Lease, deadline time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.live(time.Since(epoch)) {
		w.extend(l, deadline)
	}
}

// SetRenew switches the renewals of l on or off. Without renewals, the watchdog still watches the
// deadline. A renewal that is in flight when you switch renewals off still counts if it succeeds.
// SetRenew does nothing if l is not watched.
//
// If you switch renewals on, the next tick comes at most a third of [Options].Lease after the
// request that last acquired, renewed or extended l. If this time has passed, the watchdog ticks at
// once. SetRenew calculates the time of the request from the deadline, as if the request was for
// [Options].Lease. So if another request has extended the lease, call Extend before SetRenew.
func (w *Watchdog) SetRenew(l *Lease, renew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.stage == watched && w.setRenew(l, renew) {
		// The tick that setRenew may have started counts from now. A lease that is switched off and on
		// again and again would never reach such a tick, so the age of the lease counts instead.
		start := l.until() - (w.options.Lease - Drift(w.options.Lease))
		w.nextTick = min(w.nextTick, max(time.Since(epoch), start+w.period))
		w.wakeBy(w.nextTick)
	}
}

// RenewNow ticks at once, and returns without waiting for the renewals. Call RenewNow after a
// connection was lost, because the store may have forgotten the leases. A tick made this way comes
// at least a thirtieth of [Options].Lease after the last tick, so the tick may be postponed until
// then. As at every tick, the watchdog renews only leases with renewals switched on.
func (w *Watchdog) RenewNow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.renewable > 0 {
		w.nextTick = min(w.nextTick, max(time.Since(epoch), w.lastTick+w.options.Lease/30))
		w.wakeBy(w.nextTick)
	}
}

// Remove ends the watch of l and reports whether l was watched. If so, Lost is never called for l.
// Otherwise l was removed before, was never added, or was lost. Lost may still be running then, and
// Remove does not wait for it. A call of Renew in flight may still renew l in the store, and its
// result is ignored.
func (w *Watchdog) Remove(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.stage != watched {
		return false
	}
	if l.renew {
		w.setRenew(l, false)
	}
	last := len(w.deadlines) - 1
	moved := w.deadlines[last]
	w.deadlines[last] = nil // otherwise the array would keep the lease alive
	w.deadlines = w.deadlines[:last]
	if moved != l {
		w.deadlines.place(moved, int(l.index))
	}
	l.stage = ended
	return true
}

// Leases returns the leases under watch. After Close, Leases returns the remaining leases.
func (w *Watchdog) Leases() []*Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.deadlines)
}

// Find returns a lease under watch for which match returns true, or nil. The watchdog holds its
// mutex during the call, so match must not block.
func (w *Watchdog) Find(match func(*Lease) bool) *Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.deadlines, match); i >= 0 {
		return w.deadlines[i]
	}
	return nil
}

// Close stops renewals and watches, cancels the context of all calls of Renew, and waits for these
// calls and for a running callback. The watchdog makes no callbacks afterwards, so Close neither
// releases nor reports the remaining leases. You may call Close several times, and each call waits.
// Do not call Close from a callback, because the callback would wait for itself.
func (w *Watchdog) Close() {
	w.mu.Lock()
	w.cancel()
	w.mu.Unlock()
	w.goroutines.Wait()
}

// extend moves the deadline of l forward, never back. Called with mu held.
func (w *Watchdog) extend(l *Lease, deadline time.Time) {
	if until := deadline.Sub(epoch); until > l.until() {
		l.deadline.Store(int64(until))
		w.deadlines.place(l, int(l.index))
	}
}

// setRenew sets l.renew, and reports whether that switches renewals on. It starts the tick with the
// first renewable lease. Called with mu held.
func (w *Watchdog) setRenew(l *Lease, renew bool) (on bool) {
	if l.renew == renew {
		return false
	}
	l.renew = renew
	if !renew {
		w.renewable--
		if w.renewable == 0 {
			w.nextTick, w.nextEarly = never, never
		}
	} else if w.renewable++; w.renewable == 1 {
		// Each tick draws the period, and setRenew does not. In a loop that locks and unlocks, each start
		// then moves the tick later, and need not wake the scheduler.
		w.nextTick = time.Since(epoch) + w.period
		w.wakeBy(w.nextTick)
	}
	return renew
}

// wakeBy wakes the scheduler at t at the latest. Called with mu held.
func (w *Watchdog) wakeBy(t time.Duration) {
	if t < w.armed {
		w.armed = t
		wait.Fire(w.wake)
	}
}
