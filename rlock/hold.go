package rlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/owner"
)

// Hold is one level of one acquisition. Lock and TryLock return it, and it is to be released once.
// All methods are safe for concurrent use. A Hold must not be copied. A nil *Hold, as beside an
// error, is no hold: its methods return [ErrNotHeld] and zero values, and its context has ended.
//
// Never drop a Hold. If nobody can reach it, its context or the context of [WithOwner] that it was
// acquired with, nobody can release its lock. The client logs that once, after the garbage
// collector has found it, unless the lock is a MultiLock or a RedLock. The watchdog goes on
// renewing the lock. Options.MaxHold bounds how long. To hold a lock until the process ends, wait
// for Done, because the client does not report a hold after a call to Done. A goroutine that is
// blocked on Context().Done(), and does not use the hold afterwards, has dropped the hold.
type Hold struct {
	level   *level
	parent  context.Context // the caller's
	carrier *owner.Carrier  // in parent; nil if there is none

	mu  sync.Mutex
	ctx context.Context // made on demand; guarded by mu
}

// Acquisition is one owner's lock from the first level to the last, behind its [Hold] values.
// Implement it for a [Locker] of your own, such as one made of other locks, or a fake for tests,
// and make its holds with [NewHold]. Its methods must be safe for concurrent use.
type Acquisition interface {
	// Name returns the name of the lock.
	Name() string
	// Owner returns the owner, as others see it.
	Owner() string
	// Token returns the fencing token; 0 if the lock is not fenced.
	Token() int64
	// Deadline returns until when the lock can be trusted, on the monotonic clock of this process.
	Deadline() time.Time
	// Extend makes the lock last for lease from now, as described at [Hold.Extend].
	Extend(ctx context.Context, lease Lease) error
	// Release releases the level that h stands for, and ends h. It is called once for each hold,
	// even if h has ended before: if the lock was lost it returns that loss, h.Err(), so that the
	// caller of Unlock hears of it.
	Release(h *Hold) error
}

// NewHold returns a hold of a lock that is not of this package, and a function that ends it for a
// reason: [ErrReleased], or an error that matches [ErrLost] or [ErrClosed]; nil counts as
// ErrReleased. Only the first call has an effect. ctx is the caller's; the hold takes its owner
// from it if there is one.
func NewHold(ctx context.Context, of Acquisition) (h *Hold, end func(reason error)) {
	l := new(level)
	return l.newHold(ctx, of), l.end
}

// newHold returns the caller's hold of a level that is not of this package.
func (l *level) newHold(ctx context.Context, of Acquisition) *Hold {
	token, carrier := owner.From(ctx)
	if token == 0 {
		token = owner.New()
	}
	l.acquisition, l.owner = of, token
	return &Hold{level: l, parent: ctx, carrier: carrier}
}

// noHold stands for a nil *Hold.
var noHold = func() *Hold {
	h, end := NewHold(context.Background(), nothing{})
	end(errNilHold)
	h.level.beginRelease()
	return h
}()

var errNilHold = fmt.Errorf("%w: hold is nil, because the lock was not acquired; check the error "+
	"of Lock or TryLock before you defer the release", ErrNotHeld)

// nothing is the acquisition of a nil hold.
type nothing struct{}

func (nothing) Name() string                        { return "" }
func (nothing) Owner() string                       { return "" }
func (nothing) Token() int64                        { return 0 }
func (nothing) Deadline() time.Time                 { return time.Time{} }
func (nothing) Extend(context.Context, Lease) error { return errNilHold }
func (nothing) Release(*Hold) error                 { return errNilHold }

// of returns what the hold stands for.
func (h *Hold) of() *level {
	if h == nil {
		h = noHold
	}
	return h.level
}

// Name returns the name of the lock.
func (h *Hold) Name() string { return h.of().acquisition.Name() }

// Owner returns the owner's name in Redis, as other clients see it: "<client id>:<number>". All
// levels of an acquisition have the same one; the owner's next acquisition has another.
func (h *Hold) Owner() string { return h.of().acquisition.Owner() }

// Token returns the fencing token: the number of this acquisition of a fenced lock
// ([Client.NewFencedLock]). It is larger than that of any earlier acquisition, by whatever client,
// as long as Redis keeps its data. All levels of an acquisition have the same token. A MultiLock
// has the token of its fenced part, if it has just one. RedLocks and locks of other kinds have 0.
//
// Pass it to the resource that the lock guards with each write, and have the resource refuse a
// token that is smaller than the largest it has seen. Then a holder that was stopped and does not
// know yet that its lease is over does no harm.
func (h *Hold) Token() int64 { return h.of().acquisition.Token() }

// Context returns the context for the work under the lock. It derives from the context given to
// Lock or TryLock, and carries the owner, so that a lock acquired with it re-enters. It ends when
// the hold ends: with the cause [ErrLost] (a *[LostError]) at the instant from which the lock
// cannot be trusted, [ErrReleased] after Unlock, or [ErrClosed].
func (h *Hold) Context() context.Context {
	if h == nil {
		h = noHold
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		h.ctx = h.newContext()
	}
	return h.ctx
}

// newContext makes the context of the hold: an inner one that can be cancelled, and around it one
// with the carrier, which keeps the hold reachable. The caller's context may last long, and keeps
// the inner one only. So the hold is unreachable once callers have neither it nor its context. A
// caller's context without an owner keeps no hold reachable, so it need not be severed.
func (h *Hold) newContext() context.Context {
	l := h.level
	if a, ok := l.acquisition.(*acquisition); ok {
		a.session.Enter() // from now on callers may have its owner
	}
	parent, caller := h.parent, (*severable)(nil)
	if h.carrier != nil {
		caller = &severable{context: h.parent}
		parent = caller
	}
	inner, cancel := context.WithCancelCause(parent)
	l.cancelAtEnd(cancel, caller)
	return owner.Carry(inner,
		&owner.Carrier{Token: l.owner, Outer: h.carrier, Hold: h})
}

// Done returns a channel that is closed when the hold has ended; Err then returns the reason.
// Unlike Context it does not end with the caller's context: a lock is held until it is released.
func (h *Hold) Done() <-chan struct{} { return h.of().doneChannel() }

// Err returns why the hold ended: [ErrLost], [ErrReleased] or [ErrClosed]; nil if it has not.
func (h *Hold) Err() error { return h.of().err() }

// Deadline returns the instant until which the lock can be trusted, on the monotonic clock of this
// process. Each renewal by the watchdog moves it. Package watchdog documents how it is computed.
func (h *Hold) Deadline() time.Time { return h.of().acquisition.Deadline() }

// Valid reports whether the lock can be trusted at this instant. It reads the clock itself. Code
// that may have been stopped for long (a paused process, a long garbage collection) should ask
// right before it writes, because its context hears of the deadline only when timers run again.
// Even so, only a fencing token protects a write that is already on its way.
func (h *Hold) Valid() bool { return h.Err() == nil && time.Until(h.Deadline()) > 0 }

// Extend makes the lock last for lease from now, unless it lasts longer already. It is for work
// under an explicit lease that takes longer than expected. Deadline has moved when it returns nil.
// Holds with the lease [Watchdog] don't need Extend; Watchdog as an argument extends once, by
// Options.WatchdogLease.
//
// All levels of an acquisition share one lease. Extend costs one command, for a MultiLock or
// RedLock one for each part. If some of those fail, the others have been extended already. It works
// on a server that is out of memory.
//
// It returns when Redis has replied, when ctx ends, or after Options.CommandTimeout (for a RedLock,
// that of its first client), whichever is first:
//   - [ErrLost] if the lock was lost, even if only Redis knew: the hold has ended when Extend
//     returns, and the owner's next attempt acquires the lock afresh;
//   - [ErrNotHeld] if this hold was released;
//   - ctx's error, or [ErrOutcomeUnknown], if Redis did not reply in time, and a *[ServerError] if
//     it refuses: the hold lasts until its Deadline, as before;
//   - [ErrInvalid] for a lease of less than 3 ms.
func (h *Hold) Extend(ctx context.Context, lease Lease) (err error) {
	defer wrap(&err, h.Name())
	l := h.of()
	if err := l.err(); err != nil {
		l.end(err) // returns when the hold has ended everywhere
		return ofEnded(err)
	}
	before := l.acquisition.Deadline()
	err = l.acquisition.Extend(ctx, lease)
	if err == nil && l.acquisition.Deadline() != before {
		l.trace.Load().extended(time.Duration(lease))
	}
	return err
}

// ofEnded returns the error of a call on a hold that has ended.
func ofEnded(reason error) error {
	if reason == ErrReleased { //nolint:errorlint // a wrapped one is another reason
		return fmt.Errorf("%w: this hold is already released", ErrNotHeld)
	}
	return reason
}

// Unlock releases this level. The lock becomes free, and a waiter is woken, when the last level is
// released. Levels may be released in any order, but if an outer one is first, a warning is logged
// once: goroutines that share an owner do that, and do not exclude each other.
//
// Unlock takes no context, because a release must not depend on one: it works after the caller's
// context has ended, as in a deferred call. It blocks for at most Options.CommandTimeout (for a
// RedLock, that of its first client), or, once the client is closed, until rueidis gives up. It
// returns
//   - [ErrNotHeld] if this hold was released before;
//   - [ErrLost] if the lock was lost before: what was done under it may have overlapped with
//     another holder's work. If the reply to a first release was lost and the lock is then found
//     gone, it counts as released, because the two cases cannot be told apart;
//   - [ErrOutcomeUnknown] if Redis did not reply in time: the hold has ended in this process, and
//     the release is retried in the background until the lease ends;
//   - a *[ServerError] if Redis refuses: the hold has ended in this process, and the lock is free
//     when its lease ends.
func (h *Hold) Unlock() (err error) {
	if h == nil {
		h = noHold
	}
	l := h.level
	switch {
	case l.beginRelease():
		err = l.acquisition.Release(h)
		if trace := l.trace.Load(); trace != nil {
			trace.released(err, false)
		}
	case h == noHold:
		err = errNilHold
	default:
		err = ofEnded(ErrReleased)
	}
	if err != nil {
		wrap(&err, h.Name())
	}
	return err
}

// UnlockTo is [Hold.Unlock] for a deferred call, and blocks for as long: it joins the error of the
// release to *err, unless *err says the same already. err must be the named result of the function.
// With another variable, such as one that := declares in an inner block, the error goes nowhere:
// use [Do] there.
//
//	func ship(ctx context.Context) (err error) {
//		hold, err := lock.Lock(ctx, rlock.Watchdog)
//		if err != nil {
//			return err
//		}
//		defer hold.UnlockTo(&err)
func (h *Hold) UnlockTo(err *error) {
	if failure := h.Unlock(); failure != nil && !errors.Is(*err, failure) {
		*err = errors.Join(*err, failure)
	}
}

// level is what a [Hold] stands for. It is apart from the Hold, because this package keeps it until
// it is released: a Hold that no caller can reach any more is found in misuse.go.
type level struct {
	acquisition Acquisition
	owner       owner.Token // carried by the context of the hold
	renew       bool        // it asks for the watchdog; guarded by the acquisition's mu
	place       int32       // in root, which guards it
	site        callSite    // nil unless an option asks for it
	root        *owner.Root // has it, while it lasts: see owner.Carrier; nil if none does

	goroutine uint64 // that acquired it; 0 without Options.Debug

	whole atomic.Pointer[level] // of the lock made of others that it is a part of; nil if none

	trace atomic.Pointer[holdTrace] // nil without a tracer

	unlocked atomic.Bool // its release has begun
	ending   sync.Mutex  // held while the level ends, so that a second end waits for the first

	mu        sync.Mutex
	hold      *Hold                   // until it is watched; guarded by mu
	reachable *reachable              // once it is watched, until it is reported; guarded by mu
	caller    *severable              // in the hold's context; guarded by mu; nil if it is not needed
	ended     error                   // guarded by mu
	done      chan struct{}           // made on demand; guarded by mu
	cancel    context.CancelCauseFunc // of the hold's context; guarded by mu
	callbacks []func(error)           // guarded by mu
}

// Place implements [owner.Held].
func (l *level) Place() *int32 { return &l.place }

// err returns why the level ended; nil if it has not.
func (l *level) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// doneChannel returns the channel that is closed when the level has ended.
func (l *level) doneChannel() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.ended != nil {
			close(l.done)
		}
	}
	return l.done
}

// cancelAtEnd calls cancel with the reason when the level ends; at once if it has. caller is the
// parent of the context that cancel ends; nil if that may be kept.
func (l *level) cancelAtEnd(cancel context.CancelCauseFunc, caller *severable) {
	l.mu.Lock()
	l.cancel, l.caller = cancel, caller
	ended := l.ended
	l.mu.Unlock()
	if ended != nil {
		cancel(ended)
	}
}

// beginRelease begins the release of the level, and reports whether it was the first to do so.
func (l *level) beginRelease() bool { return l.unlocked.CompareAndSwap(false, true) }

// end ends the level for a reason, unless it has ended. When it returns, the level and the hold's
// context have ended, even if another call is ending them: a caller that is told of a loss must
// find it everywhere. The caller must hold no mutex: end runs callers' code, on contexts that they
// derived.
func (l *level) end(reason error) {
	if reason == nil {
		reason = ErrReleased
	}
	l.ending.Lock()
	defer l.ending.Unlock()
	l.mu.Lock()
	if l.ended != nil {
		l.mu.Unlock()
		return
	}
	l.ended = reason
	if l.root != nil {
		l.root.Remove(l)
	}
	if l.done != nil {
		close(l.done)
	}
	callbacks, cancel := l.callbacks, l.cancel
	l.callbacks, l.cancel, l.hold, l.reachable, l.caller = nil, nil, nil, nil, nil
	l.mu.Unlock()
	if trace := l.trace.Load(); trace != nil {
		trace.ended(l, reason)
	}
	for _, f := range callbacks {
		f(reason)
	}
	if cancel != nil {
		cancel(reason)
	}
}

// onEnd calls f when the level ends, before the hold's context does; at once if it has. f must not
// block.
func (l *level) onEnd(f func(reason error)) {
	l.mu.Lock()
	ended := l.ended
	if ended == nil {
		l.callbacks = append(l.callbacks, f)
	}
	l.mu.Unlock()
	if ended != nil {
		f(ended)
	}
}
