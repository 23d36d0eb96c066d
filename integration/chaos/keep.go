package chaos

import (
	"context"
	"sync"
	"time"

	"holdfast/integration/history"
)

// keep holds a lock for several leases of the watchdog, again and again. Nobody else wants it.
func (w *worker) keep(ctx context.Context, name string) {
	lease := w.client.plan.WatchdogLease
	for ctx.Err() == nil {
		a := w.ask(ctx, history.Event{Locks: []history.Lock{{Name: name, Kind: history.Plain}},
			Lease: lease, Wait: w.client.plan.Wait}, false)
		if a != nil {
			w.keepFor(ctx, a, 2*lease+w.upTo(lease))
			// A release ends the renewals before it is sent. Thousands at once take round trips.
			w.client.releasing <- struct{}{}
			w.release(a)
			<-w.client.releasing
		}
		w.sleep(ctx.Done(), usualPace+w.upTo(usualPace))
	}
}

// keepFor waits, and checks now and then that the lock can be trusted: there may be thousands.
func (w *worker) keepFor(ctx context.Context, a *attempt, length time.Duration) {
	end := time.NewTimer(length)
	defer end.Stop()
	checks := time.NewTicker(w.client.plan.WatchdogLease / 4)
	defer checks.Stop()
	for {
		select {
		case <-a.hold.Done():
			a.lost()
			return
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-checks.C:
			a.check()
		}
	}
}

// storm begins calls without wait at a steady rate, whether or not the ones before have returned.
func (c *client) storm(ctx context.Context) {
	ticker := time.NewTicker(time.Second / time.Duration(len(c.plan.Storm)))
	defer ticker.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	w := &worker{client: c}
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		lock := history.Lock{Name: c.plan.Storm[i%len(c.plan.Storm)], Kind: history.Plain}
		calls.Go(func() {
			a := w.ask(ctx, history.Event{Locks: []history.Lock{lock},
				Lease: c.plan.WatchdogLease}, false)
			if a != nil {
				w.release(a)
			}
		})
	}
}
