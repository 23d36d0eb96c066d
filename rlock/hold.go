package rlock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/owner"
)

// Hold is one level of one acquisition: what Lock and TryLock return and what is to be released
// once. All methods are safe for concurrent use. A Hold must not be copied.
type Hold struct {
	_ noCopy

	acquisition Acquisition
	parent      context.Context // the caller's
	owner       owner.Token     // whom the context of the hold carries
	renew       bool            // this level asked for the watchdog

	claimed atomic.Bool // Unlock was called
	ending  sync.Mutex  // held while the hold ends, so that a second end waits for the first

	// The channel and the context are made when somebody asks for them.
	mu       sync.Mutex
	ended    error                   // guarded by mu
	done     chan struct{}           // guarded by mu
	ctx      context.Context         // guarded by mu
	cancel   context.CancelCauseFunc // guarded by mu
	afterEnd []func(error)           // guarded by mu
}

// Acquisition is what is behind a [Hold]: one owner's lock from the first level to the last.
// Implement it for a [Locker] of your own, such as one made of other locks, or a fake for the tests
// of code that takes locks, and make its holds with [NewHold]. Its methods must be safe for
// concurrent use.
type Acquisition interface {
	// Name is the name of the lock.
	Name() string
	// Owner is who holds it, as others see it.
	Owner() string
	// Token is the number of the acquisition of a fenced lock; 0 if it is none.
	Token() int64
	// Deadline is the instant until which the lock can be trusted, on the monotonic clock of this
	// process.
	Deadline() time.Time
	// Extend makes the lock last for lease from now, as [Hold.Extend] says.
	Extend(ctx context.Context, lease time.Duration) error
	// Release gives back what h stands for, and ends h. It is called once for each hold, also if h
	// has ended before: if the lock was lost it returns that, h.Err(), for whoever unlocks must
	// hear of it.
	Release(h *Hold) error
}

// NewHold makes a hold of a lock that is not of this package, and a function that ends it for a
// reason: [ErrReleased], or an error that matches [ErrLost] or [ErrClosed]; nil counts as
// ErrReleased. Only the first call counts. ctx is the caller's; it carries the owner if there is
// one.
func NewHold(ctx context.Context, of Acquisition) (h *Hold, end func(reason error)) {
	token, named := owner.From(ctx)
	if !named {
		token = owner.New()
	}
	h = &Hold{acquisition: of, parent: ctx, owner: token}
	return h, h.end
}

// Name is the name of the lock.
func (h *Hold) Name() string { return h.acquisition.Name() }

// Owner is who holds the lock, as Redis and other clients see it: "<client id>:<token>". All levels
// of an acquisition have the same; the next acquisition has another.
func (h *Hold) Owner() string { return h.acquisition.Owner() }

// Token is the number of this acquisition of a fenced lock ([Client.NewFencedLock]): larger than
// that of any acquisition before, by whatever client, as long as Redis keeps its data; 0 for locks
// of other kinds. All levels of an acquisition have the same. That of a MultiLock is the one of its
// fenced part, if it has just one; a RedLock has none.
//
// Hand it to the resource that the lock guards with each write, and have the resource refuse a
// token that is smaller than the largest it has seen. Then a holder that was stopped and does not
// know yet that its lease is over does no harm.
func (h *Hold) Token() int64 { return h.acquisition.Token() }

// noCopy makes go vet object to a copy, which could neither be released nor hear of a loss.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Context is for the work under the lock. It derives from the context given to Lock or TryLock, and
// carries the owner, so that a lock taken with it re-enters. It ends when the hold ends: with the
// cause [ErrLost] (a *[LostError]) at the instant from which the lock cannot be trusted,
// [ErrReleased] after Unlock, or [ErrClosed].
func (h *Hold) Context() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancelCause(owner.With(h.parent, h.owner))
		if h.ended != nil {
			h.cancel(h.ended)
		}
	}
	return h.ctx
}

// Done is closed when the hold has ended, for whatever reason Err gives. Unlike Context it does not
// end with the caller's context: a lock is held until it is released.
func (h *Hold) Done() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done == nil {
		h.done = make(chan struct{})
		if h.ended != nil {
			close(h.done)
		}
	}
	return h.done
}

// Err is nil while the lock is held, and then why the hold ended: [ErrLost], [ErrReleased] or
// [ErrClosed].
func (h *Hold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// Deadline is the instant until which the lock can be trusted, on the monotonic clock of this
// process. Each renewal by the watchdog moves it. See package watchdog for how it is reckoned.
func (h *Hold) Deadline() time.Time { return h.acquisition.Deadline() }

// Valid tells whether the lock can be trusted at this instant. It reads the clock itself: code that
// may have been stopped for long (a paused process, a long garbage collection) should ask right
// before it writes, because its context hears of the deadline only when timers run again. Even so,
// only a fencing token protects a write that is already on its way.
func (h *Hold) Valid() bool {
	return h.Err() == nil && time.Now().Before(h.Deadline())
}

// Extend makes the lock last for lease from now, unless it lasts longer already, for work under an
// explicit lease that takes longer than was thought. Deadline moves on when it returns nil. A lock
// with the lease [Watchdog] needs it not; here that lease is Options.WatchdogLease, once.
//
// All levels of an acquisition last as long. It costs one command, of a MultiLock or RedLock one
// for each part; if some of those fail, the others last for longer already. It works on a server
// that is out of memory.
//
// It blocks until ctx ends, and at most Options.CommandTimeout (of a RedLock that of its first
// client), and returns
//   - [ErrLost] if the lock was lost, even if only Redis knew: the hold has ended when Extend
//     returns, and the owner's next attempt acquires the lock afresh;
//   - [ErrNotHeld] if this hold was released;
//   - ctx's error, or [ErrOutcomeUnknown], if Redis did not answer in time, and a *[ServerError] if
//     it refuses: the hold lasts until its Deadline, as before;
//   - [ErrInvalid] for a lease of less than 3 ms.
func (h *Hold) Extend(ctx context.Context, lease time.Duration) (err error) {
	defer wrap(&err, h.Name())
	if err := h.Err(); err != nil {
		h.end(err) // returns when the hold has ended everywhere
		return ofEnded(err)
	}
	return h.acquisition.Extend(ctx, lease)
}

// ofEnded is the error for something asked of a hold that has ended.
func ofEnded(reason error) error {
	if reason == ErrReleased { //nolint:errorlint // what is wrapped is another reason
		return fmt.Errorf("%w: this hold was released before", ErrNotHeld)
	}
	return reason
}

// Unlock releases this level. The lock becomes free, and a waiter is woken, when the outermost
// level is released; levels may be released in any order.
//
// It works when ctx has ended already, and does not stop when ctx ends: it takes at most
// Options.CommandTimeout. It returns
//   - [ErrNotHeld] if this hold was released before;
//   - [ErrLost] if the lock was lost before: what was done under it may have overlapped with
//     another holder's work. A lock that is found gone after the reply to a first release was lost
//     counts as released by that one, which nobody can tell;
//   - [ErrOutcomeUnknown] if Redis did not answer in time: the release is repeated in the
//     background until the lease ends, and the hold is over for this process;
//   - a *[ServerError] if Redis refuses: the hold is over for this process, and the lock is free
//     when its lease ends.
func (h *Hold) Unlock(ctx context.Context) (err error) {
	defer wrap(&err, h.Name())
	if !h.claimRelease() {
		return fmt.Errorf("%w: this hold was released before", ErrNotHeld)
	}
	return h.acquisition.Release(h)
}

// claimRelease claims the release of the hold, which happens once. It returns false if another call has.
func (h *Hold) claimRelease() bool { return h.claimed.CompareAndSwap(false, true) }

// end ends the hold for the given reason, unless it has ended. When it returns, the hold and its
// context have ended, even if another call is ending them: a caller that is told of a loss must
// find it everywhere. It runs code of callers that derived a context, so no mutex may be held.
func (h *Hold) end(reason error) {
	if reason == nil {
		reason = ErrReleased
	}
	h.ending.Lock()
	defer h.ending.Unlock()
	h.mu.Lock()
	if h.ended != nil {
		h.mu.Unlock()
		return
	}
	h.ended = reason
	if h.done != nil {
		close(h.done)
	}
	cancel, callbacks := h.cancel, h.afterEnd
	h.afterEnd = nil
	h.mu.Unlock()
	for _, tell := range callbacks {
		tell(reason)
	}
	if cancel != nil {
		cancel(reason)
	}
}

// onEnd has f told when the hold ends, by whoever ends it, before its context does; at once if it
// has ended. f must not block.
func (h *Hold) onEnd(f func(reason error)) {
	h.mu.Lock()
	ended := h.ended
	if ended == nil {
		h.afterEnd = append(h.afterEnd, f)
	}
	h.mu.Unlock()
	if ended != nil {
		f(ended)
	}
}
