package watchdog

import (
	"context"
	"sync"
	"time"
)

// Watchdog renews leases and reports those that are lost. One of them serves any number of leases
// with one goroutine, plus one for each group while it is being renewed. All its methods may be
// called from any goroutine; none but Close waits for a call of Renew.
type Watchdog struct {
	options Options // with defaults; constant

	ctx        context.Context // ends when the watchdog closes
	cancel     context.CancelFunc
	goroutines sync.WaitGroup // Go is called only while mu is held and closed is false

	wake chan struct{} // capacity 1; tells the scheduler that armed became earlier

	mu sync.Mutex // guards what follows, and the unexported fields of the leases

	closed    bool
	deadlines deadlines         // every watched lease
	renewable int               // how many of them are to be renewed; the tick stands still while it is 0
	rounds    map[string]*round // the groups that have a batch waiting or in flight
	lastTick  time.Duration     // when the last tick was
	nextTick  time.Duration     // when the next one is, unless renewable is 0
	nextEarly time.Duration     // when leases that are short are renewed before that; never if there are none
	interval  time.Duration     // from a start of the tick, or from a tick, to the next tick

	// armed is when the scheduler looks again by itself. It is never later than the next thing
	// there is to do. It may be earlier: what was to be done then may have been removed, and
	// looking once for nothing is cheaper than setting a timer at every removal.
	armed time.Duration
}

// New starts a watchdog. It panics when a required option is missing or an option makes no sense.
// Close stops it.
func New(o Options) *Watchdog {
	o = o.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watchdog{
		options:  o,
		ctx:      ctx,
		cancel:   cancel,
		wake:     make(chan struct{}, 1),
		rounds:   make(map[string]*round),
		interval: jitteredInterval(o.Lease),
		armed:    never,

		lastTick:  now(), // a renewal that starts later has missed no tick
		nextEarly: never,
	}
	w.goroutines.Go(w.schedule)
	return w
}

// Add starts to watch l, which may be trusted until deadline; see [Deadline]. With renew, l is
// renewed at each tick; without, only its deadline is watched. A deadline that has passed already
// is reported at once, though not by the calling goroutine. Add panics when l was added before,
// even if it was removed since: a reply that is still on its way would be taken for the new watch.
// After Close, OnLost is not called any more.
func (w *Watchdog) Add(l *Lease, deadline time.Time, renew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if l.stage != unwatched {
		panic("watchdog: a lease was added twice")
	}
	l.stage = watched
	l.deadline.Store(int64(deadline.Sub(epoch)))
	w.deadlines.add(l)
	w.setRenew(l, renew)
	if renew {
		if t := now(); l.until()-t < w.short() {
			w.hurry(t, l.until()-t)
		}
	}
	w.wakeBy(l.until())
}

// Extend moves the deadline of l on, to deadline, after a request other than a renewal has
// lengthened the lease. It does nothing when the present deadline is later, when that deadline has
// passed, or when l is not watched: what is lost stays lost, and a caller that must know looks at
// [Lease.Deadline] afterwards.
func (w *Watchdog) Extend(l *Lease, deadline time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if l.live(now()) {
		w.extend(l, deadline)
	}
}

// SetRenew says whether l is to be renewed from now on. It does nothing when l is not watched. A
// renewal that is in flight when renewing is switched off still counts when it succeeds.
//
// A lease that is older than a third of [Options].Lease when renewing is switched on is due at
// once, and all others with it. So where a request lengthened the lease as well, call Extend first.
func (w *Watchdog) SetRenew(l *Lease, renew bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if l.stage != watched || l.renew == renew {
		return
	}
	w.setRenew(l, renew)
	if renew {
		// The tick that setRenew may have started counts from now. But a lease that was switched
		// off and on does not begin anew: switched often enough, it would never see a tick.
		start := l.until() - (w.options.Lease - Drift(w.options.Lease))
		w.nextTick = min(w.nextTick, max(now(), start+w.interval))
		w.wakeBy(w.nextTick)
	}
}

// Remove ends the watch of l and reports whether it did so. If true, OnLost has not been called and
// will not be. If false, l was not watched: it had been removed before or had never been added, or
// it was lost, and then OnLost has been called, or is being called at this moment: Remove does not
// wait for it to return.
//
// A call of Renew in flight may still renew l in the store after Remove has returned. Its result is
// ignored.
func (w *Watchdog) Remove(l *Lease) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.end(l)
}

// Close stops renewing and watching, ends the context of calls of Renew in flight, and waits for
// them and for a running OnLost or OnFailure to return. No call of any of these is made afterwards:
// the leases left are neither released nor reported. Close may be called more than once; each call
// waits. It must not be called from a callback, which would wait for itself.
func (w *Watchdog) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()

	w.cancel()
	w.goroutines.Wait()
}

// The methods below are called while mu is held.

func (w *Watchdog) extend(l *Lease, deadline time.Time) {
	if until := deadline.Sub(epoch); until > l.until() {
		l.deadline.Store(int64(until))
		w.deadlines.moved(l)
	}
}

// end ends the watch of l and reports whether there was one. Whoever gets true, and nobody else,
// may report a loss.
func (w *Watchdog) end(l *Lease) bool {
	if l.stage != watched {
		return false
	}
	w.setRenew(l, false)
	w.deadlines.remove(l)
	l.stage = ended
	return true
}

// setRenew keeps the count of renewable leases, and starts the tick with the first one.
func (w *Watchdog) setRenew(l *Lease, renew bool) {
	if l.renew == renew {
		return
	}
	l.renew = renew
	if !renew {
		w.renewable--
		return
	}
	w.renewable++
	if w.renewable == 1 {
		// The interval is drawn at each tick and not here. So in a loop that locks and unlocks,
		// each start puts the tick later than the start before, and the scheduler need not be told.
		w.nextTick = now() + w.interval
		w.wakeBy(w.nextTick)
	}
}
