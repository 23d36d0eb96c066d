package chaos

import (
	"context"
	"time"

	"holdfast/integration/history"
)

const (
	longestMoment  = 2 * time.Millisecond  // inside a section
	shortestHurry  = 10 * time.Millisecond // wait of an impatient worker
	longestHurry   = 30 * time.Millisecond
	longestContext = 15 * time.Millisecond // life of its context, if it has no wait
)

// hurry acquires a lock for a moment: an impatient worker always the same one, a patient worker any
// of them.
func (w *worker) hurry(ctx context.Context) {
	all := w.kinds()
	kind := all[w.dice.IntN(len(all))]
	if w.index < w.client.plan.Impatient {
		kind = all[w.index%len(all)]
	}
	e := history.Event{
		Locks: []history.Lock{{Name: w.client.plan.Names[kind][0], Kind: kind}},
		Lease: w.client.plan.WatchdogLease,
		Wait:  time.Second + w.upTo(w.client.plan.Wait-time.Second),
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
