package chaos

import (
	"context"
	"time"

	"holdfast/integration/history"
)

// firsts is how many workers of each process open a burst.
const firsts = 2

// abandon takes one of the two locks that a burst is about. The first workers do not wait, and have
// a long lease, so those that find the lock taken have no reason to look again soon. The others
// wait, have short leases, and half of them never release the lock.
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
