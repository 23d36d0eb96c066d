package watchdog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/internal/wait"
)

// mostCalls limits the calls of a group in flight, so that a batch neither waits for the reply to
// the earlier batch nor fills the connection. Overdue calls do not count, up to the same number. So
// a store that never replies gets no further calls, but the watchdog continues with a store that
// replies to some.
const mostCalls = 128

// round is the pending work of one group. Watchdog.mu guards it.
type round struct {
	group   string
	queue   []*batch   // waiting for their call, by due
	calls   []*renewal // in flight
	overdue int        // how many of the calls are overdue
}

// batch is a set of leases that the next call renews. Watchdog.mu guards it.
type batch struct {
	leases   []*Lease
	group    string        // of the round
	since    time.Duration // the tick that made them due, counted from epoch
	due      time.Duration // when the call may begin
	patience time.Duration // how long a call may take before another call begins
	tries    wait.Backoff  // between failed calls
	failed   bool          // the latest call has failed, so slowness is not why the batch is late
}

// renewal is one call of Options.Renew. Watchdog.mu guards overdue; the rest is constant.
type renewal struct {
	batch   *batch
	leases  []*Lease      // of the batch when the call began
	began   time.Duration // a lease counts from before the request, see the package comment
	due     time.Duration // when the call is overdue
	overdue bool          // the leases are queued again, but a reply still counts
}

// errNoOutcome is the error of a call that left leases unknown and returned no error.
var errNoOutcome = errors.New("watchdog: Renew gave no outcome for some leases")

// errEnded is the error of a call that did not return.
var errEnded = errors.New("a hook of the Redis client panicked or ended the goroutine of a renewal")

// add queues b by its due time, behind batches that are due at the same time. So a failed batch
// comes after all batches of this tick and before all batches of later ticks, and neither starves
// the other.
func (r *round) add(b *batch) {
	b.group = r.group
	i := len(r.queue)
	for i > 0 && r.queue[i-1].due > b.due {
		i--
	}
	r.queue = slices.Insert(r.queue, i, b)
}

// hasRoom reports whether another call may begin.
func (r *round) hasRoom() bool {
	return len(r.calls)-r.overdue < mostCalls && len(r.calls) < 2*mostCalls
}

// prune drops the leases that need no call at t, because a late reply has renewed them, or because
// a renewal would keep others out for nothing. It reports whether no lease is left.
func (b *batch) prune(t time.Duration) (empty bool) {
	b.leases = slices.DeleteFunc(b.leases, func(l *Lease) bool {
		if l.batch != b {
			return true
		}
		if l.renew && l.live(t) {
			return false
		}
		l.batch = nil
		return true
	})
	return len(b.leases) == 0
}

// delay draws the pause after a failure: below lease/300, later lease/30, or 5 ms if that is more.
// A rejection hardly passes that soon, so the pause is then below lease/30, later lease/10.
func (b *batch) delay(lease time.Duration, rejected bool) time.Duration {
	const shortest = 5 * time.Millisecond
	first, longest := lease/300, lease/30
	if rejected {
		first, longest = lease/30, lease/10
	}
	return b.tries.Within(max(shortest, first), max(shortest, longest))
}

// begin begins the due calls of r for which there is room, and returns when to call begin again
// unless a call ends before. Called with mu held.
func (w *Watchdog) begin(r *round, t time.Duration) (next time.Duration) {
	for w.ctx.Err() == nil && len(r.queue) > 0 && r.queue[0].due <= t && r.hasRoom() {
		b := r.queue[0]
		r.queue = slices.Delete(r.queue, 0, 1)
		if b.prune(t) {
			continue
		}
		c := &renewal{batch: b, leases: b.leases, began: t, due: t + b.patience}
		r.calls = append(r.calls, c)
		w.goroutines.Go(func() { w.call(r, c) })
	}
	next = never
	for _, c := range r.calls {
		if !c.overdue {
			next = min(next, c.due)
		}
	}
	if len(r.queue) > 0 && r.queue[0].due > t {
		next = min(next, r.queue[0].due)
	}
	if len(r.queue)+len(r.calls) == 0 {
		delete(w.rounds, r.group)
	}
	return next
}

// repeat queues the leases of calls that are overdue at t once more, while the calls continue, and
// returns the reports. Called with mu held.
func (w *Watchdog) repeat(r *round, t time.Duration) (failures []func()) {
	for _, c := range r.calls {
		if c.overdue || c.due > t {
			continue
		}
		c.overdue = true
		r.overdue++
		again := &batch{since: c.batch.since, due: t, patience: 2 * c.batch.patience}
		for _, l := range c.leases {
			if l.batch == c.batch {
				l.batch, again.leases = again, append(again.leases, l)
			}
		}
		if again.prune(t) {
			continue // all leases were removed
		}
		r.add(again)
		leases, err := slices.Clone(again.leases), fmt.Errorf("no reply after %v", c.due-c.began)
		failures = append(failures, func() {
			w.fail(r, len(leases), err)
			if w.ctx.Err() == nil && w.options.OnOverdue != nil {
				w.options.OnOverdue(leases)
			}
		})
	}
	return failures
}

// call makes one call and handles its result, even if Renew ends the goroutine, as a hook around
// the client of the store may do. A panic goes on and ends the process, but leaves no mutex locked.
func (w *Watchdog) call(r *round, c *renewal) {
	deadline := Deadline(epoch.Add(c.began), w.options.Lease) // a later reply has no value
	ctx, cancel := context.WithDeadline(w.ctx, deadline)
	outcomes, err := []Outcome(nil), errEnded
	defer func() {
		cancel()
		w.handle(r, c, deadline, outcomes, err)
	}()
	outcomes, err = w.options.Renew(ctx, r.group, c.leases)
}

// handle handles the result of a call, which gives leases until deadline. The number of retries is
// not limited, because a lease is due until it is renewed, removed or lost.
func (w *Watchdog) handle(
	r *round, c *renewal, deadline time.Time, outcomes []Outcome, err error,
) {
	w.mu.Lock()
	t := time.Since(epoch)
	r.calls = slices.DeleteFunc(r.calls, func(other *renewal) bool { return other == c })
	if c.overdue {
		r.overdue--
	}
	var gone, unknown, rejected, missed []*Lease
	for i, l := range c.leases {
		outcome := notKnown
		if i < len(outcomes) {
			outcome = outcomes[i]
		}
		l.alone = outcome == Rejected || l.alone && outcome == notKnown
		if outcome == notKnown || outcome == Rejected {
			switch {
			case l.batch != c.batch: // another call renews the lease, or has renewed it
			case outcome == Rejected && len(c.leases) > 1:
				rejected = append(rejected, l)
			default:
				unknown = append(unknown, l)
			}
			continue
		}
		if l.batch != nil && l.batch.since <= c.began {
			l.batch = nil // even a batch that waits because c is overdue
		}
		switch {
		case outcome == Gone:
			gone = append(gone, l)
		case outcome == Stopped:
			if l.stage == watched {
				w.setRenew(l, false)
			}
		case l.live(t):
			w.extend(l, deadline)
			// The renewal was in flight while a tick queued the other leases, and the next tick could be too
			// late.
			if l.renew && l.batch == nil && c.began < w.lastTick {
				missed = append(missed, l)
			}
		}
	}
	if len(missed) > 0 {
		r.add(w.newBatch(missed, w.lastTick, t))
	}
	for _, l := range rejected {
		r.add(w.newBatch([]*Lease{l}, c.batch.since, t))
	}
	if len(unknown) > 0 {
		c.batch.leases, c.batch.failed = unknown, true
		c.batch.due = t + c.batch.delay(w.options.Lease, unknown[0].alone)
		r.add(c.batch)
	}
	w.wakeBy(w.begin(r, t))
	w.mu.Unlock()

	for _, l := range gone {
		w.lose(l, ErrGone)
	}
	if len(unknown) > 0 {
		w.fail(r, len(unknown), cmp.Or(err, errNoOutcome))
	}
}

// newBatch returns a batch of leases that became due at the tick at since. Called with mu held.
func (w *Watchdog) newBatch(leases []*Lease, since, due time.Duration) *batch {
	b := &batch{leases: leases, since: since, due: due, patience: w.options.callTimeout}
	for _, l := range leases {
		l.batch = b
	}
	return b
}

// fail reports leases with an unknown outcome.
func (w *Watchdog) fail(r *round, leases int, err error) {
	if w.ctx.Err() == nil && w.options.OnFailure != nil {
		w.options.OnFailure(r.group, leases, err)
	}
}

// lose ends the watch of l and reports the reason, unless the watch has ended already. It ends the
// watch immediately before the callback, so that a Remove before the callback is in time.
func (w *Watchdog) lose(l *Lease, reason error) {
	if w.ctx.Err() == nil && w.Remove(l) && l.Subject != nil {
		l.Subject.Lost(l, reason)
	}
}
