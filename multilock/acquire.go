package multilock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/lua"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// attempt is one caller's way to all of the locks. It is used by one goroutine.
type attempt struct {
	lock    *Lock
	lease   time.Duration
	acquire func(context.Context, rlock.Locker) (*rlock.Hold, error) // takes one, and waits as long as the caller wants to
	waits   bool
	until   time.Time // when the caller's wait is over; zero if it has no limit, or if nothing is waited for

	acquired []*rlock.Hold // in the order of the parts
	lastStep []*rlock.Hold // those of the last step
	since    []time.Time   // when the step began that each was taken by
}

// run takes one part after the other. Those that can be taken with one script are, if they are
// free; if not, the first of them is waited for by itself, and the rest of them is tried again.
func (at *attempt) run(ctx context.Context) (*rlock.Hold, error) {
	acquireCtx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	parts := at.lock.parts
	for len(at.acquired) < len(parts) {
		rest := parts[len(at.acquired):]
		var err error
		began := time.Now()
		at.whileExtending(func() { at.lastStep, err = at.step(acquireCtx, rest) })
		if err != nil {
			return nil, at.fail(ctx, acquireCtx, err)
		}
		for _, h := range at.lastStep {
			at.acquired, at.since = append(at.acquired, h), append(at.since, began)
			// Whoever waits for one part has no use for it when another is lost.
			hook.OnEnd(h, func(reason error) { abort(endError(h, reason)) })
		}
	}
	if err := at.confirm(acquireCtx); err != nil {
		return nil, at.fail(ctx, acquireCtx, err)
	}
	return newHold(ctx, at.lock, at.acquired), nil
}

// step takes one part at least.
func (at *attempt) step(ctx context.Context, rest []part) ([]*rlock.Hold, error) {
	if batch := batchOf(rest); len(batch) > 1 {
		holds, err := at.tryBatch(ctx, batch)
		if err == nil || !at.mayWait(err) {
			return holds, err
		}
	}
	hold, err := at.acquire(ctx, rest[0])
	if err != nil {
		return nil, err
	}
	return []*rlock.Hold{hold}, nil
}

// tryBatch tries once to take several, for no longer than the caller waits. After that it is up to
// the one that is waited for by itself to say what was in the way.
func (at *attempt) tryBatch(ctx context.Context, locks []*rlock.Lock) ([]*rlock.Hold, error) {
	if !at.until.IsZero() {
		// As a single lock it has a moment for its answer, however short the wait.
		const moment = 10 * time.Millisecond
		bounded, cancel := context.WithTimeout(ctx, max(time.Until(at.until), moment))
		defer cancel()
		ctx = bounded
	}
	return hook.TryBatch(ctx, at.lease, locks)
}

// batchOf returns the first of the parts, as many of them as can be taken together.
func batchOf(parts []part) []*rlock.Lock {
	var batch []*rlock.Lock
	for _, p := range parts {
		if p.batch.Client == "" || p.batch != parts[0].batch {
			break
		}
		batch = append(batch, p.plain)
	}
	return batch
}

// mayWait tells that an attempt to take several together may be followed by waiting for one of
// them.
func (at *attempt) mayWait(err error) bool {
	switch {
	case errors.Is(err, rlock.ErrLost),
		errors.Is(err, rlock.ErrClosed),
		errors.Is(err, rlock.ErrInvalid):
		return false
	case errors.Is(err, rlock.ErrReleased):
		return true // by another goroutine of the owner: it is the first again
	}
	var refusal *rlock.ServerError
	if errors.As(err, &refusal) {
		// As on a cluster that moves the slot, where a single key is still found. What needs
		// somebody to act fails again.
		return at.waits || refusal.Class == lua.Temporary
	}
	return at.waits
}

// keeping does a step, and meanwhile keeps the leases of the parts that were taken before from
// running out. No lease is ever longer than asked for: a process that dies here leaves nothing that
// lasts longer than what it wanted.
func (at *attempt) whileExtending(step func()) {
	if len(at.acquired) == 0 || at.lease <= rlock.Watchdog {
		step()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		again := time.NewTimer(at.extendAfter())
		defer again.Stop()
		for {
			select {
			case <-again.C:
				// What fails is tried again. A part that is lost aborts the step.
				_ = each(at.acquired, func(h *rlock.Hold) error { return h.Extend(ctx, at.lease) })
				again.Reset(at.extendAfter())
			case <-ctx.Done():
				return
			}
		}
	})
	step()
	cancel()
	work.Wait()
}

// due is in what time a third of the lease of some part is over, which may have begun several steps
// ago; but a moment at least, for a server that refuses.
func (at *attempt) extendAfter() time.Duration {
	return max(time.Until(earliest(at.acquired))-at.lease/3*2, at.lease/30, time.Millisecond)
}

// settle gives those parts the lease that was asked for anew that have held it for longer than the
// margin that a hold leaves for drifting clocks, counted from what the last step took. A part that
// is not held any more refuses it.
//
// With a watchdog the leases last, and this is to see whether they are still there: of those that
// were taken some time ago.
func (at *attempt) confirm(ctx context.Context) error {
	late := make([]*rlock.Hold, 0, len(at.acquired))
	if at.lease == rlock.Watchdog {
		const some = 100 * time.Millisecond
		for i, h := range at.acquired {
			if time.Since(at.since[i]) > some && !slices.Contains(at.lastStep, h) {
				late = append(late, h)
			}
		}
	} else {
		wanted := watchdog.Deadline(time.Now(), at.lease)
		if newest := earliest(at.lastStep); newest.Before(wanted) {
			wanted = newest // and not later, as that of a part which the owner had for longer already
		}
		wanted = wanted.Add(-watchdog.Drift(at.lease))
		for _, h := range at.acquired {
			if h.Deadline().Before(wanted) {
				late = append(late, h)
			}
		}
	}
	if err := each(late, func(h *rlock.Hold) error { return h.Extend(ctx, at.lease) }); err != nil {
		return err
	}
	for _, h := range at.acquired {
		if err := h.Err(); err != nil {
			return endError(h, err)
		}
	}
	return nil
}

// ended is why an attempt fails one of whose parts has ended.
func endError(h *rlock.Hold, reason error) error {
	switch {
	case errors.Is(reason, rlock.ErrReleased):
		return partReleased(h)
	case errors.Is(reason, rlock.ErrClosed):
		return fmt.Errorf("holdfast: lock %q: %w", h.Name(), reason)
	default:
		return reason // which names the lock
	}
}

// partReleased returns the loss of a part that somebody released by itself.
func partReleased(part *rlock.Hold) error {
	return &rlock.LostError{Lock: part.Name(), Reason: errReleased}
}

// errReleased is the reason of the loss of a part that was released, by [rlock.Lock.Unlock] for the
// same owner or by the end of its client. It is not [rlock.ErrReleased], which would say that all
// of the lock was.
var errReleased = errors.New("it was released meanwhile")

// fail gives back what was taken, and says why it failed.
func (at *attempt) fail(ctx, acquireCtx context.Context, err error) error {
	// What ended the wait was the end of another part, unless a client that is closed released that
	// first.
	cause := context.Cause(acquireCtx)
	byClose := errors.Is(err, rlock.ErrClosed) && errors.Is(cause, errReleased)
	if ctx.Err() == nil && cause != nil && !byClose {
		err = fmt.Errorf("while another part was waited for: %w", cause)
	}
	for _, failure := range release(at.lock.parts, at.acquired) {
		if failure != nil && !errors.Is(failure, rlock.ErrLost) &&
			!errors.Is(failure, rlock.ErrNotHeld) {
			err = errors.Join(err, fmt.Errorf("and a part was not released: %w", failure))
		}
	}
	return err
}

// earliest is until when all of the holds can be trusted. There is one at least.
func earliest(holds []*rlock.Hold) time.Time {
	first := holds[0].Deadline()
	for _, h := range holds[1:] {
		if d := h.Deadline(); d.Before(first) {
			first = d
		}
	}
	return first
}

// each calls f for all holds at the same time, and joins the errors.
func each(holds []*rlock.Hold, f func(*rlock.Hold) error) error {
	if len(holds) == 1 {
		return f(holds[0])
	}
	errs := make([]error, len(holds))
	var calls sync.WaitGroup
	for i, h := range holds {
		calls.Go(func() { errs[i] = f(h) })
	}
	calls.Wait()
	return errors.Join(errs...)
}
