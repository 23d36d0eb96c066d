package chaos

import (
	"context"
	"time"

	"holdfast/integration/history"
)

// openers is how many workers of each process open a burst.
const openers = 2

// abandon acquires one of the two locks of a burst. The openers do not wait, and have a long lease,
// so a waiter that finds their lock held has no reason to ask again soon. The others wait, have
// short leases, and half of them never release the lock.
func (w *worker) abandon(ctx context.Context) {
	p := w.client.plan
	all := w.kinds()
	burst := int(time.Duration(history.Now()) / p.Burst)
	// Not the kinds of the next burst: newcomers would notice what these waiters miss.
	kind := all[(openers*burst+w.index%openers)%len(all)]
	e := history.Event{Locks: []history.Lock{{Name: p.Names[kind][0], Kind: kind}},
		Lease: p.WatchdogLease}
	if w.index >= openers {
		e.Lease, e.Fixed = p.Abandoned/2+w.upTo(p.Abandoned/2), true
		e.Wait = p.Burst + w.upTo(p.Wait-p.Burst)
		w.sleep(ctx.Done(), w.upTo(burstLasts))
	}
	if w.oneIn(2) { // rueidis then times the commands out
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
