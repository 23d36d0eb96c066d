package multilock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/owner"
	"holdfast/internal/wait"
	"holdfast/rlock"
	"holdfast/watchdog"
)

// attempt is one call to Lock or TryLock. It must not be used concurrently.
type attempt struct {
	lock  *Lock
	limit time.Duration // of the wait: Unlimited or NoWait, or the wait ends at until
	until time.Time
	lease rlock.Lease

	acquired []*rlock.Hold // in the order of the parts
	since    []time.Time   // for each of acquired, when its step began
	lastStep int           // index of the first part that the last step acquired
	panicked any           // a part's panic while the last step extended it; nil if none
}

// acquire acquires the parts in order, in steps. A step tries a batch with one script. If a lock of
// the batch is held, the step waits for its first part alone, and the next step tries the rest
// again.
func (l *Lock) acquire(ctx context.Context, limit time.Duration, lease rlock.Lease,
) (*rlock.Hold, error) {
	trace := hook.Trace(ctx, l.first, "multilock", l.name, l.servers, limit, lease)
	var hold *rlock.Hold
	returned := false
	defer func() {
		if !returned && hold != nil { // the tracer has panicked or ended the goroutine
			_ = hold.Unlock()
		}
	}()
	hold, err := l.acquireAll(trace.Context(ctx), trace, limit, lease)
	trace.End(hold, err)
	returned = true
	return hold, err
}

// trace is the trace of a call.
type trace interface {
	Context(ctx context.Context) context.Context
	Reenters() // called if the owner holds the lock already
}

// acquireAll is acquire within a trace.
func (l *Lock) acquireAll(ctx context.Context, trace trace,
	limit time.Duration, lease rlock.Lease,
) (*rlock.Hold, error) {
	if err := cmp.Or(l.invalid, compose.CheckTimes(limit, time.Duration(lease))); err != nil {
		return nil, l.wrap(err)
	}
	if token, _ := owner.From(ctx); token == 0 {
		ctx = rlock.WithOwner(ctx)
	}
	ctx = owner.Within(ctx) // the caller holds parts while it waits for other parts
	at := attempt{lock: l, limit: limit, lease: lease}
	if limit > 0 && limit != wait.Unlimited {
		at.until = time.Now().Add(limit)
	}
	// The contexts of the parts have no user, and so need no grace.
	acquireCtx, cancel := context.WithCancelCause(rlock.WithGrace(ctx, 0))
	defer cancel(nil)
	var abort atomic.Pointer[context.CancelCauseFunc]
	abort.Store(&cancel)
	defer abort.Store(nil) // parts must not keep ctx alive
	returned := false
	defer func() {
		if !returned { // a part, a hook around rueidis or a tracer has panicked or ended the goroutine
			release(l.parts, at.acquired)
		}
	}()
	for len(at.acquired) < len(l.parts) {
		at.lastStep = len(at.acquired)
		began := time.Now()
		holds, err := at.step(acquireCtx, l.parts[at.lastStep:])
		if err != nil {
			if at.panicked != nil {
				panic(at.panicked)
			}
			returned = true
			return nil, at.fail(ctx, acquireCtx, err)
		}
		for _, h := range holds {
			at.acquired, at.since = append(at.acquired, h), append(at.since, began)
			// After the loss of a part, waiting for the others is pointless.
			name := h.Name() // the function outlives the call, and must not keep h reachable
			hook.OnEnd(h, func(reason error) {
				if cancel := abort.Load(); cancel != nil {
					(*cancel)(endError(name, reason))
				}
			})
		}
		if at.panicked != nil {
			panic(at.panicked)
		}
	}
	err := at.confirm(acquireCtx)
	returned = true
	if err != nil {
		return nil, at.fail(ctx, acquireCtx, err)
	}
	hold, nested := newHold(ctx, l, at.acquired)
	if nested {
		trace.Reenters()
	}
	return hold, nil
}

// step acquires at least one part, and meanwhile extends the leases of the parts acquired before.
func (at *attempt) step(ctx context.Context, rest []part) ([]*rlock.Hold, error) {
	if len(at.acquired) > 0 && at.lease > 0 {
		extendCtx, stop := context.WithCancel(context.Background())
		var extending sync.WaitGroup
		defer extending.Wait()
		defer stop()
		extending.Go(func() {
			defer func() { at.panicked = recover() }() // of a part
			at.keepExtending(extendCtx)
		})
	}
	var batch []*rlock.Lock // the longest prefix that one script can acquire
	for _, p := range rest {
		if !p.Batched || p.Batch != rest[0].Batch {
			break
		}
		batch = append(batch, p.plain)
	}
	if len(batch) > 1 {
		holds, err := at.tryBatch(ctx, batch)
		if err == nil || !at.mayTryAlone(err) {
			return holds, err
		}
	}
	hold, err := at.acquirePart(ctx, rest[0].locker)
	return []*rlock.Hold{hold}, err
}

// acquirePart acquires one part, within the caller's wait.
func (at *attempt) acquirePart(ctx context.Context, part rlock.Locker) (*rlock.Hold, error) {
	hold, err := at.ask(ctx, part)
	if hold == nil && err == nil {
		err = fmt.Errorf("lock %q: its Locker (%T) returned neither a hold nor an error; fix the "+
			"Locker so that it returns one of them", part.Name(), part)
	}
	return hold, err
}

// ask calls the part, within the rest of the wait.
func (at *attempt) ask(ctx context.Context, part rlock.Locker) (*rlock.Hold, error) {
	left := at.limit
	switch left {
	case wait.Unlimited:
		return part.Lock(ctx, at.lease)
	case rlock.NoWait:
	default:
		// A wait that is over still tries once, as for a single lock, so that a free lock does not fail
		// for lack of time.
		left = max(time.Until(at.until), time.Nanosecond)
	}
	return part.TryLock(ctx, left, at.lease)
}

// tryBatch tries the batch once, within the caller's wait. If the wait ends first, step tries the
// first part alone, and the error of that part names the holder.
func (at *attempt) tryBatch(ctx context.Context, batch []*rlock.Lock) ([]*rlock.Hold, error) {
	if !at.until.IsZero() {
		// Even the shortest wait leaves time for a reply, as for a single lock.
		left := max(time.Until(at.until), 10*time.Millisecond)
		bounded, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		ctx = bounded
	}
	return hook.TryBatch(ctx, at.lease, batch)
}

// mayTryAlone reports whether the first part may be tried alone after its batch failed with err.
func (at *attempt) mayTryAlone(err error) bool {
	var refusal *rlock.ServerError
	switch {
	case errors.Is(err, rlock.ErrLost), errors.Is(err, rlock.ErrClosed),
		errors.Is(err, rlock.ErrInvalid):
		return false
	case errors.Is(err, rlock.ErrReleased):
		return true // another goroutine of the owner released a lock, so the lock needs a new acquisition
	case errors.As(err, &refusal) && refusal.Class == rlock.ClassTemporary:
		return true // while a cluster moves the slot, a script with one key still works
	case errors.As(err, &refusal) && refusal.Code == "CROSSSLOT":
		return true // the server looks like a single node, but has slots
	}
	// A caller that waits can wait for the part alone. An error that an operator has to fix occurs
	// again.
	return at.limit != rlock.NoWait
}

// keepExtending extends the leases of the parts acquired so far until ctx ends. No lease ever gets
// longer than requested, so a process that dies here blocks others no longer than that.
func (at *attempt) keepExtending(ctx context.Context) {
	for {
		// Wait until a part has used a third of its lease, but never for zero time, in case the server
		// rejects.
		lease := time.Duration(at.lease)
		pause := time.Until(earliest(at.acquired)) - lease/3*2
		select {
		case <-time.After(max(pause, lease/30, time.Millisecond)):
			_ = extend(ctx, at.lease, at.acquired) // the loop retries; a lost part aborts the step
		case <-ctx.Done():
			return
		}
	}
}

// confirm extends each part that expires earlier than the parts of the last step by more than the
// drift margin of a lease. With a watchdog, no part needs that, and the same command checks that
// parts acquired some time ago are still held. It fails if a part is not held any more.
func (at *attempt) confirm(ctx context.Context) error {
	const recent = 100 * time.Millisecond
	// A part that the owner held before may have a longer lease, which says nothing about the others.
	wanted := watchdog.Deadline(time.Now(), time.Duration(at.lease))
	if last := earliest(at.acquired[at.lastStep:]); last.Before(wanted) {
		wanted = last
	}
	wanted = wanted.Add(-watchdog.Drift(time.Duration(at.lease)))
	var late []*rlock.Hold
	for i, h := range at.acquired[:at.lastStep] {
		if at.lease < 0 && time.Since(at.since[i]) > recent ||
			at.lease > 0 && h.Deadline().Before(wanted) {
			late = append(late, h)
		}
	}
	if err := extend(ctx, at.lease, late); err != nil {
		return err
	}
	for _, h := range at.acquired {
		if err := h.Err(); err != nil {
			return endError(h.Name(), err)
		}
	}
	return nil
}

// endError returns why an attempt fails when the hold of a part has ended.
func endError(part string, reason error) error {
	switch {
	case errors.Is(reason, rlock.ErrReleased):
		return partReleased(part)
	case errors.Is(reason, rlock.ErrClosed):
		return fmt.Errorf("holdfast: lock %q: %w", part, reason)
	}
	return reason // a LostError, which names the lock
}

// partReleased returns the loss of a part that was released separately, by [rlock.Lock.Unlock] for
// the same owner, or by the end of its client.
func partReleased(part string) error {
	return &rlock.LostError{Lock: part, Reason: errReleased}
}

// errReleased is not [rlock.ErrReleased], which would mean that the whole lock was released.
var errReleased = errors.New("released separately")

// fail releases the acquired parts, and returns the error of the attempt.
func (at *attempt) fail(ctx, acquireCtx context.Context, err error) error {
	// The end of another part has ended the wait, unless that part only ended because its client
	// closed.
	cause := context.Cause(acquireCtx)
	byClose := errors.Is(err, rlock.ErrClosed) && errors.Is(cause, errReleased)
	if ctx.Err() == nil && cause != nil && !byClose {
		err = fmt.Errorf("lost while waiting for another lock: %w", cause)
	}
	for _, failure := range release(at.lock.parts, at.acquired) {
		if failure != nil && !errors.Is(failure, rlock.ErrLost) &&
			!errors.Is(failure, rlock.ErrNotHeld) {
			err = errors.Join(err, fmt.Errorf("not released after this error: %w", failure))
		}
	}
	return at.lock.wrap(err)
}

// earliest returns the time until which all holds are valid. holds must not be empty.
func earliest(holds []*rlock.Hold) time.Time {
	return slices.MinFunc(holds, func(a, b *rlock.Hold) int {
		return a.Deadline().Compare(b.Deadline())
	}).Deadline()
}

// extend extends the leases of all holds concurrently, and joins the errors.
func extend(ctx context.Context, lease rlock.Lease, holds []*rlock.Hold) error {
	errs := make([]error, len(holds))
	wait.Together(len(holds), func(i int) { errs[i] = holds[i].Extend(ctx, lease) })
	return errors.Join(errs...)
}
