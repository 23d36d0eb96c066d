package chaos

import (
	"context"
	"time"

	"holdfast/integration/history"
)

const (
	longestMoment  = 2 * time.Millisecond  // inside a section; see also Scenario.Moment
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
	if w.client.plan.Moment > 0 {
		w.sleep(ctx.Done(), untilWhole(0))
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
	if w.client.plan.Moment > 0 {
		e.Wait = untilWhole(e.Wait)
	}
	if a := w.ask(ctx, e, ends); a != nil {
		w.stayFor(ctx, a, w.moment())
		w.release(a)
	}
}

// moment returns how long to stay. With Scenario.Moment, a few stay until the lock was renewed.
func (w *worker) moment() time.Duration {
	longest := w.client.plan.Moment
	switch {
	case longest == 0:
		return w.upTo(longestMoment)
	case w.oneIn(50):
		longest = w.client.plan.WatchdogLease
	}
	return untilWhole(w.upTo(longest))
}

// untilWhole returns the time from now until the first whole millisecond after d.
func untilWhole(d time.Duration) time.Duration {
	end := time.Duration(history.Now()) + d
	return d + time.Millisecond - end%time.Millisecond
}
