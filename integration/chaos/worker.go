package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"holdfast/integration/history"
	"holdfast/rlock"
)

// worker acquires locks, one after the other, by its dice.
type worker struct {
	client *client
	index  int // in its process
	dice   *rand.Rand
}

const (
	usualPace      = 20 * time.Millisecond // see Scenario.Pace
	shortestLease  = 100 * time.Millisecond
	longestLease   = 2 * time.Second // except the watchdog's
	fashion        = time.Second / 2 // how long all workers want the same kind, at least
	burstLasts     = 100 * time.Millisecond
	checkInterval  = 10 * time.Millisecond  // at least
	longestSection = 700 * time.Millisecond // now and then
)

// run acquires locks until ctx ends.
func (w *worker) run(ctx context.Context) {
	// Not all at once, which a bubble's scheduler would put in any order; or at the next burst.
	w.sleep(ctx.Done(), w.pause())
	if w.client.plan.Wander {
		w.wander(ctx)
	}
	for ctx.Err() == nil {
		switch p := w.client.plan; {
		case p.Impatient > 0:
			w.hurry(ctx)
		case p.Abandoned > 0:
			w.abandon(ctx)
		default:
			w.section(ctx)
		}
		w.sleep(ctx.Done(), w.pause())
	}
}

// pause returns how long to wait until the next section.
func (w *worker) pause() time.Duration {
	if burst := w.client.plan.Burst; burst > 0 {
		// About the same time for all processes: a wake-up is missed by a caller that arrives while
		// another leaves.
		return burst - time.Duration(history.Now())%burst + w.upTo(burstLasts)
	}
	return w.upTo(w.client.plan.Pace)
}

// section acquires a lock, stays, perhaps nests a level, and releases all.
func (w *worker) section(ctx context.Context) {
	locks := w.choose()
	outer := w.acquire(ctx, locks, w.lease(), 0)
	if outer == nil {
		return
	}
	w.stay(ctx, outer)
	var inner *attempt
	if w.oneIn(2) && outer.hold.Valid() {
		// No other owner can hold it, so only the server makes it wait.
		inner = w.acquire(outer.nestedCtx, w.nested(locks), w.lease(), outer.number)
	}
	if inner != nil {
		w.stay(ctx, inner)
		if w.oneIn(2) {
			outer, inner = inner, outer // levels may end in any order
		}
		w.finish(inner)
	}
	if w.oneIn(2) {
		w.stay(ctx, outer)
	}
	w.finish(outer)
}

// choose draws the locks for a section.
func (w *worker) choose() []history.Lock {
	names := w.client.plan.Names
	var kinds []history.Kind
	for _, kind := range []history.Kind{history.Plain, history.Fair, history.Fenced, history.Read,
		history.Read, history.Write, history.Quorum} {
		if len(names[kind]) > 0 {
			kinds = append(kinds, kind)
		}
	}
	kind := kinds[w.dice.IntN(len(kinds))]
	if w.oneIn(2) { // the kind that all processes want at present
		lasts := max(fashion, 2*w.client.plan.Pace)
		kind = kinds[time.Duration(history.Now())/lasts%time.Duration(len(kinds))]
	}
	all := names[kind]
	if kind == history.Plain && len(all) > 1 && w.oneIn(3) {
		var locks []history.Lock
		for _, i := range w.dice.Perm(len(all))[:2] {
			locks = append(locks, history.Lock{Name: all[i], Kind: kind})
		}
		return locks
	}
	name := all[w.dice.IntN(len(all))]
	if burst := w.client.plan.Burst; burst > 0 { // not the last one: this one lost its listeners
		name = all[time.Duration(history.Now())/burst%time.Duration(len(all))]
	}
	return []history.Lock{{Name: name, Kind: kind}}
}

// nested returns the locks of a nested level: the same, or read for a writer.
func (w *worker) nested(locks []history.Lock) []history.Lock {
	if locks[0].Kind == history.Write && w.oneIn(2) {
		return []history.Lock{{Name: locks[0].Name, Kind: history.Read}}
	}
	return locks
}

// lease draws a short lease, or the watchdog's.
func (w *worker) lease() rlock.Lease {
	if !w.client.plan.Far && w.oneIn(3) {
		return rlock.Lease(shortestLease +
			w.upTo(min(longestLease, w.client.plan.WatchdogLease)-shortestLease))
	}
	return rlock.Watchdog
}

// acquire asks for locks in one of the ways there are. It returns nil if they were not granted. ctx
// carries the owner, if any. Half of the callers have a context that cannot end: rueidis then times
// their commands out, and closes the connection.
func (w *worker) acquire(ctx context.Context, locks []history.Lock, lease rlock.Lease,
	root int) *attempt {
	e := history.Event{
		Locks: locks,
		Lease: time.Duration(lease),
		Fixed: lease != rlock.Watchdog,
		Root:  root,
	}
	if lease == rlock.Watchdog {
		e.Lease = w.client.plan.WatchdogLease
	}
	wait := w.upTo(w.client.plan.Wait)
	if w.client.plan.Far {
		wait = w.client.plan.Wait
	}
	if w.oneIn(2) {
		ctx = context.WithoutCancel(ctx)
		wait = w.client.plan.Command + w.upTo(w.client.plan.Command) // nothing can cancel it
	}
	switch {
	case w.oneIn(4):
		return w.ask(ctx, e, false)
	case w.oneIn(8):
		e.Wait = wait
		return w.ask(ctx, e, true)
	default:
		e.Wait = wait
		return w.ask(ctx, e, false)
	}
}

// ask calls Lock with a context that ends after the wait, or TryLock. It returns nil if the locks
// were not granted.
func (w *worker) ask(ctx context.Context, e history.Event, ends bool) *attempt {
	lock, lease := w.client.locker(e.Locks), rlock.Watchdog
	if e.Fixed {
		lease = rlock.Lease(e.Lease)
	}
	call := func() (*rlock.Hold, error) { return lock.TryLock(ctx, e.Wait, lease) }
	var nestedCtx context.Context
	if ends {
		// The hold's own context ends with it, so nested levels need another one of the same owner.
		if e.Root == 0 {
			ctx = rlock.WithOwner(ctx)
			nestedCtx = ctx
		}
		call = func() (*rlock.Hold, error) {
			ctx, cancel := context.WithTimeout(ctx, e.Wait)
			defer cancel()
			return lock.Lock(ctx, lease)
		}
	}
	a := w.client.record.ask(e)
	a.fixed, a.lease = e.Fixed, e.Lease
	if !a.answered(call()) {
		return nil
	}
	a.nestedCtx = nestedCtx
	if nestedCtx == nil {
		a.nestedCtx = a.hold.Context()
	}
	return a
}

// stay works under the lock for a while, and checks that it can be trusted. Now and then it stays
// for longer than an unrenewed lease.
func (w *worker) stay(ctx context.Context, a *attempt) {
	length := w.upTo(w.client.plan.Pace)
	switch lease := w.client.plan.WatchdogLease; {
	case w.oneIn(60):
		length = w.upTo(longestSection)
	case !a.fixed && lease <= longestLease && w.oneIn(60):
		length = lease + w.upTo(lease)
	case a.fixed && w.oneIn(30):
		// The lease ends before: at its deadline, soon after which others may hold the lock.
		length = longestLease
	}
	w.stayFor(ctx, a, length)
}

// stayFor works under the lock for that long, unless the hold or ctx ends before.
func (w *worker) stayFor(ctx context.Context, a *attempt, length time.Duration) {
	end := time.NewTimer(length)
	defer end.Stop()
	checks := time.NewTicker(max(checkInterval, w.client.plan.Pace/20))
	defer checks.Stop()
	for {
		a.check()
		select {
		case <-a.hold.Done():
			a.lost()
			return
		case <-ctx.Done():
			return
		case <-end.C:
			a.check()
			return
		case <-checks.C:
		}
	}
}

// finish unlocks. Now and then it leaves that to the lease, if it is not renewed.
func (w *worker) finish(a *attempt) {
	if a.fixed && w.oneIn(30) {
		return
	}
	w.release(a)
}

// release unlocks.
func (w *worker) release(a *attempt) {
	a.check()
	a.release(func() error { return a.hold.Unlock() })
}

func (w *worker) oneIn(n int) bool { return w.dice.IntN(n) == 0 }

// upTo draws a time from 1 ns to limit.
func (w *worker) upTo(limit time.Duration) time.Duration {
	return 1 + time.Duration(w.dice.Int64N(int64(limit)))
}

// sleep waits for d, or until done is closed.
func (w *worker) sleep(done <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}

// kinds returns the kinds of the locks of this run.
func (w *worker) kinds() []history.Kind {
	var kinds []history.Kind
	for _, kind := range []history.Kind{history.Plain, history.Fair, history.Fenced, history.Read,
		history.Write, history.Quorum} {
		if len(w.client.plan.Names[kind]) > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
