package chaos

import (
	"context"
	"time"

	"holdfast/integration/history"
)

// Workers that crowd around a few locks: see Scenario.Impatient and Scenario.Abandoned.

const (
	longestMoment  = 2 * time.Millisecond  // inside a section
	shortestHurry  = 10 * time.Millisecond // wait of an impatient worker
	longestHurry   = 30 * time.Millisecond
	longestContext = 15 * time.Millisecond // life of its context, if it has no wait
	firsts         = 2                     // workers of each process that open a burst
)

// hurry takes a lock for a moment: an impatient worker always the same one, a patient worker any of
// them.
func (w *worker) hurry(ctx context.Context) {
	all := w.kinds()
	kind := all[w.dice.IntN(len(all))]
	if w.index < w.client.plan.Impatient {
		kind = all[w.index%len(all)]
	}
	e := history.Event{
		Locks: []history.Lock{{Name: w.client.plan.Names[kind][0], Kind: kind}}, Lease: w.client.plan.WatchdogLease,
		Wait: time.Second + w.upTo(w.client.plan.Wait-time.Second),
	}
	ends := w.oneIn(2)
	switch impatient := w.index < w.client.plan.Impatient; {
	case impatient && ends:
		e.Wait = w.upTo(longestContext)
	case impatient:
		e.Wait = shortestHurry + w.upTo(longestHurry-shortestHurry)
	}
	if a := w.ask(ctx, e, ends); a != nil {
		w.stayFor(ctx, a, w.upTo(longestMoment))
		w.release(a)
	}
}

// abandon takes one of the two locks that a burst is about. The first workers do not wait, and have
// a long lease, so those that find the lock taken have no reason to look again soon. These have
// short leases, and half of them never release the lock.
func (w *worker) abandon(ctx context.Context) {
	p := w.client.plan
	all := w.kinds()
	burst := int(time.Duration(history.Now()) / p.Burst)
	kind := all[(firsts*burst+w.index%firsts)%len(all)] // not those of the next burst: newcomers would see what these overlook
	e := history.Event{Locks: []history.Lock{{Name: p.Names[kind][0], Kind: kind}}, Lease: p.WatchdogLease}
	if w.index >= firsts {
		e.Lease, e.Fixed = p.Abandoned/2+w.upTo(p.Abandoned/2), true
		e.Wait = p.Burst + w.upTo(p.Wait-p.Burst)
		w.nap(ctx.Done(), w.upTo(burstLasts))
	}
	if w.oneIn(2) { // such a context takes another way to the server
		ctx = context.WithoutCancel(ctx)
	}
	a := w.ask(ctx, e, e.Fixed && w.oneIn(4))
	if a == nil {
		return
	}
	w.stayFor(ctx, a, burstLasts+w.upTo(burstLasts))
	if !e.Fixed || w.oneIn(2) {
		w.release(a)
	}
}

// kinds returns the kinds of the locks of this run.
func (w *worker) kinds() []history.Kind {
	var kinds []history.Kind
	for _, kind := range []history.Kind{history.Plain, history.Fair, history.Fenced, history.Read, history.Write, history.Quorum} {
		if len(w.client.plan.Names[kind]) > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
