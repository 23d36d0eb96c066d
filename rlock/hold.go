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

// A Hold represents one successful call to Lock or TryLock. Release each Hold exactly once. All
// methods are safe for concurrent use. Do not copy a Hold. On a nil *Hold, as returned with an
// error, the methods return [ErrNotHeld] or zero values, and the context has ended already.
//
// Never drop a Hold. If your program can no longer reach the hold, its context, or the context of
// [WithOwner] used to acquire the lock, nobody can release the lock. The watchdog keeps renewing
// it, unless Options.MaxHold sets a limit. After the garbage collector has found the hold, the
// client logs one warning, but not for a MultiLock or a RedLock.
//
// To hold a lock until the process ends, wait for [Hold.Done], because the client does not report a
// hold after a call to Done. A goroutine has dropped its hold if all it does is wait for
// Context().Done(), without using the hold afterwards.
type Hold struct {
	level        *level
	parent       context.Context // the context of the caller
	ownerContext *owner.Context  // in parent; nil without an owner context

	mu  sync.Mutex
	ctx context.Context // made on demand; guarded by mu
}

// Acquisition is the lock of an owner from the first hold to the last. Implement Acquisition for
// your own [Locker], for example for a lock made of others or for a fake in tests, and create the
// holds with [NewHold]. The methods must be safe for concurrent use.
type Acquisition interface {
	// Name returns the name of the lock.
	Name() string
	// Owner returns the name of the owner in the form that other clients see.
	Owner() string
	// Token returns the fencing token, or 0 if the lock is not fenced.
	Token() int64
	// Deadline returns the time until which the lock can be trusted, on the monotonic clock of this
	// process.
	Deadline() time.Time
	// Extend makes the lock last for lease from now, as [Hold.Extend] describes.
	Extend(ctx context.Context, lease Lease) error
	// Release releases the hold h, and ends h with the function that [NewHold] returned. Each hold
	// is released once, even if it has ended before. If the lock was lost, Release returns h.Err(),
	// so that the caller of Unlock learns of the loss.
	Release(h *Hold) error
}

// NewHold returns a hold of a lock outside this package, and a function that ends the hold. The
// reason is [ErrReleased], or an error that matches [ErrLost] or [ErrClosed], and nil means
// ErrReleased. Only the first call has an effect. ctx is the context of the caller. The hold takes
// its owner from ctx if ctx has an owner.
func NewHold(ctx context.Context, of Acquisition) (h *Hold, end func(reason error)) {
	l := new(level)
	return l.newHold(ctx, of), l.end
}

// newHold returns the caller's hold of a level outside this package.
func (l *level) newHold(ctx context.Context, of Acquisition) *Hold {
	token, ownerContext := owner.From(ctx)
	if token == 0 {
		token = owner.New()
	}
	l.acquisition, l.owner = of, token
	h := &Hold{level: l, parent: ctx, ownerContext: ownerContext}
	h.watchCaller()
	return h
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

// of returns the level of the hold.
func (h *Hold) of() *level {
	if h == nil {
		h = noHold
	}
	return h.level
}

// Name returns the name of the lock.
func (h *Hold) Name() string { return h.of().acquisition.Name() }

// Owner returns the name of the owner in Redis, "<client id>:<number>". All holds of an acquisition
// have the same name. The next acquisition of the owner has another name. Acquisitions that follow
// each other in local turns share a name (see Waiting in the package documentation).
func (h *Hold) Owner() string { return h.of().acquisition.Owner() }

// Token returns the fencing token, the number of this acquisition of a fenced lock
// ([Client.NewFencedLock]). It is larger than the token of any earlier acquisition by any client,
// as long as Redis keeps its data. All holds of an acquisition have the same token. A MultiLock has
// the token of its fenced part, if exactly one part is fenced. Other locks return 0.
//
// Send the token with each write to the resource under the lock, and make the resource reject a
// token smaller than the largest so far. Then a paused holder with an expired lease does no harm.
func (h *Hold) Token() int64 { return h.of().acquisition.Token() }

// Context returns the context for the work under the lock. It derives from the context given to
// Lock or TryLock, and carries the owner, so a call with it can acquire the same lock again.
//
// The context ends when the hold ends. The cause is [ErrLost] (a *[LostError]) as soon as the lock
// can no longer be trusted, [ErrReleased] after Unlock, or [ErrClosed]. The context also ends with
// the context given to Lock or TryLock, unless [WithGrace] puts that off.
//
// If the lock disappears from Redis, for example because somebody deletes or force-unlocks it, the
// client learns that from its next command. With [Watchdog] this is a renewal, after a third of
// Options.WatchdogLease at the latest. With a lease of your own, it may be the release.
func (h *Hold) Context() context.Context {
	if h == nil {
		h = noHold
	}
	return h.context()
}

// context implements [Hold.Context].
func (h *Hold) context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		h.ctx = h.newContext()
	}
	return h.ctx
}

// newContext makes the context of the hold. The inner context can be canceled. The outer context
// carries the owner context, which keeps the hold reachable. The context of the caller may last
// long, and keeps only the inner context reachable. So the hold is unreachable once callers have
// neither the hold nor its context. If the context of the caller has no owner, it keeps no hold
// reachable, so it need not be severed.
func (h *Hold) newContext() context.Context {
	l := h.level
	if a, ok := l.acquisition.(*acquisition); ok {
		a.session.Enter() // from now on callers may have the owner of the session
	}
	parent, caller := h.parent, (*severable)(nil)
	if h.ownerContext != nil {
		caller = &severable{context: h.parent}
		parent = caller
	}
	var inner context.Context
	var cancel context.CancelCauseFunc
	if grace := h.grace(); grace > 0 {
		inner, cancel = withGraced(parent, grace)
	} else {
		inner, cancel = context.WithCancelCause(parent)
	}
	l.cancelAtEnd(cancel, caller)
	return owner.Carry(inner,
		&owner.Context{Token: l.owner, Outer: h.ownerContext, Hold: h})
}

// Done returns a channel that closes when the hold ends. [Hold.Err] then returns the reason. Unlike
// [Hold.Context], Done ignores the context of the caller, because a lock is held until its release.
func (h *Hold) Done() <-chan struct{} { return h.of().doneChannel() }

// Err returns nil while the hold lasts, and then the reason for its end: [ErrLost], [ErrReleased]
// or [ErrClosed].
func (h *Hold) Err() error { return h.of().err() }

// Deadline returns the time until which the lock can be trusted, on the monotonic clock of this
// process. Each renewal moves the deadline. Package watchdog documents the calculation.
func (h *Hold) Deadline() time.Time { return h.of().acquisition.Deadline() }

// Valid reports whether the lock can be trusted now, as far as the client knows (see
// [Hold.Context]). It reads the clock. Call it right before a write if the process may have paused,
// for example in a long garbage collection, because contexts end only when timers run again. Even
// then, only a fencing token protects against a write under way.
func (h *Hold) Valid() bool { return h.Err() == nil && time.Until(h.Deadline()) > 0 }

// Extend makes the lock last for lease from now, unless the lock lasts longer already. Use Extend
// for work that takes longer than its lease. A hold with the lease [Watchdog] does not need Extend.
// With Watchdog as the argument, Extend extends once, by Options.WatchdogLease.
//
// All holds of an acquisition share a lease. Extend sends one command, or one command per part for
// a MultiLock or RedLock. If some parts fail, the other parts stay extended. Extend works even on a
// server that is out of memory.
//
// Extend blocks until Redis responds, ctx ends, or Options.CommandTimeout of the client passes (for
// a RedLock, of its first client). After nil, Deadline has moved. Extend returns
//   - [ErrLost] if the lock was lost, even if only Redis knew. The hold has then ended, and the
//     next attempt by its owner acquires the lock anew;
//   - [ErrNotHeld] if this hold was released;
//   - the error of ctx, or [ErrOutcomeUnknown], if Redis did not respond in time, and a
//     *[ServerError] if Redis rejects the command. The hold lasts until its old deadline;
//   - [ErrInvalid] for a lease from 0 to below 3 ms.
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

// ofEnded returns the error of a call on an ended hold.
func ofEnded(reason error) error {
	if reason == ErrReleased { //nolint:errorlint // a wrapped ErrReleased is another reason
		return fmt.Errorf("%w: this hold is already released", ErrNotHeld)
	}
	return reason
}

// Unlock releases this hold. When the owner has released its last hold, the lock becomes free and a
// waiter wakes up. You can release nested holds in any order. But if an outer hold is released
// first, the client logs one warning, because that happens when goroutines share an owner and so do
// not exclude each other.
//
// Unlock takes no context, so a deferred Unlock works after the context of the caller has ended.
// Unlock blocks for at most Options.CommandTimeout (for a RedLock, of its first client). After the
// client was closed, Unlock blocks until rueidis gives up. Unlock returns
//   - [ErrNotHeld] if this hold was released before;
//   - [ErrLost] if the lock was lost before. Your work may have overlapped with the work of another
//     holder. A release that passes the lock on in a local turn does not ask Redis, so it does not
//     notice what happened in Redis within the last 100 ms. If the reply to a first release was
//     lost and Redis then reports that the lock is gone, the lock counts as released, because
//     Unlock cannot tell the two cases apart;
//   - [ErrOutcomeUnknown] if Redis did not respond in time. The hold has ended in this process, and
//     the client repeats the release in the background until the lease ends;
//   - a *[ServerError] if Redis rejects the release. The hold has ended in this process, and the
//     lock is free when its lease ends.
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

// UnlockTo is [Hold.Unlock] for a deferred call, and blocks like Unlock. It joins the error of the
// release to *err, unless *err already matches that error. err must be the named result of the
// function. An error in any other variable, for example from := in an inner block, is lost. Use
// [Do] there.
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

// level is what a [Hold] stands for, one successful call within an acquisition. It is separate from
// the Hold, because this package keeps the level until its release. See misuse.go for a Hold that
// no caller can reach any more.
type level struct {
	acquisition Acquisition
	owner       owner.Token // the owner in the context of the hold
	renew       bool        // the caller asked for the watchdog; guarded by mu of the acquisition
	place       int32       // in root, guarded by root
	site        callSite    // nil unless an option asks for it
	root        *owner.Root // has the level while it lasts, see owner.Context; nil without a root

	goroutine uint64 // the goroutine that acquired the level; 0 without Options.Debug

	whole atomic.Pointer[level] // the level of the lock with this part; nil for other levels

	trace atomic.Pointer[holdTrace] // nil without a tracer

	unlocked atomic.Bool // the release has begun
	ending   sync.Mutex  // held while the level ends, so that a second end waits for the first

	mu        sync.Mutex
	hold      *Hold                   // until the hold is watched; guarded by mu
	reachable *reachable              // from the watch to the report; guarded by mu
	caller    *severable              // in the context of the hold; guarded by mu; nil if not needed
	ended     error                   // guarded by mu
	done      chan struct{}           // made on demand; guarded by mu
	cancel    context.CancelCauseFunc // of the context of the hold; guarded by mu
	callbacks []func(error)           // guarded by mu
}

// Place implements [owner.Held].
func (l *level) Place() *int32 { return &l.place }

// err returns why the level ended, or nil if it lasts.
func (l *level) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// doneChannel returns a channel that closes when the level ends.
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

// cancelAtEnd calls cancel with the reason when the level ends, or at once if the level has ended.
// caller is the parent of the context that cancel ends, or nil if that parent may be kept.
func (l *level) cancelAtEnd(cancel context.CancelCauseFunc, caller *severable) {
	l.mu.Lock()
	l.cancel, l.caller = cancel, caller
	ended := l.ended
	l.mu.Unlock()
	if ended != nil {
		cancel(ended)
	}
}

// beginRelease begins the release of the level, and reports whether this was the first call.
func (l *level) beginRelease() bool { return l.unlocked.CompareAndSwap(false, true) }

// end ends the level for a reason, unless the level has ended. When end returns, the level and the
// context of the hold have ended, even if another call ends them. A caller that learns of a loss
// must find the loss everywhere. The caller must hold no mutex, because end runs the code of
// callers on derived contexts.
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

// onEnd calls f when the level ends, before the context of the hold ends. If the level has ended,
// onEnd calls f at once. f must not block.
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
