package rlock

import (
	"context"
	"time"
)

// Hold is one level of one acquisition: what Lock and TryLock return and what is to be released once. All methods are
// safe for concurrent use. A Hold must not be copied.
type Hold struct {
	_ noCopy

	holding *holding
	parent  context.Context // the caller's
	renew   bool            // this level asked for the watchdog

	// Guarded by holding.mu. The channel and the context are made when somebody asks for them.
	leaving bool // Unlock was called
	ended   error
	done    chan struct{}
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

// Name is the name of the lock.
func (h *Hold) Name() string { return h.holding.lock.name }

// Owner is who holds the lock, as Redis and other clients see it: "<client id>:<token>". All levels of an acquisition have
// the same; the next acquisition has another.
func (h *Hold) Owner() string { return h.holding.owner }

// Token is the number of this acquisition of a fenced lock ([Client.NewFencedLock]): larger than that of any acquisition
// before, by whatever client, as long as Redis keeps its data; 0 for locks of other kinds. All levels of an acquisition
// have the same.
//
// Hand it to the resource that the lock guards with each write, and have the resource refuse a token that is smaller than
// the largest it has seen. Then a holder that was stopped and does not know yet that its lease is over does no harm.
func (h *Hold) Token() int64 { return h.holding.fence }

// noCopy makes go vet object to a copy, which could neither be released nor hear of a loss.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Context is for the work under the lock. It derives from the context given to Lock or TryLock, and carries the owner, so
// that a lock taken with it re-enters. It ends when the hold ends: with the cause [ErrLost] (a *[LostError]) at the
// instant from which the lock cannot be trusted, [ErrReleased] after Unlock, or [ErrClosed].
func (h *Hold) Context() context.Context {
	g := h.holding
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.ctx == nil {
		h.ctx, h.cancel = context.WithCancelCause(withToken(h.parent, g.token))
		if h.ended != nil {
			h.cancel(h.ended)
		}
	}
	return h.ctx
}

// Done is closed when the hold has ended, for whatever reason Err gives. Unlike Context it does not end with the
// caller's context: a lock is held until it is released.
func (h *Hold) Done() <-chan struct{} {
	g := h.holding
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.done == nil {
		h.done = make(chan struct{})
		if h.ended != nil {
			close(h.done)
		}
	}
	return h.done
}

// Err is nil while the lock is held, and then why the hold ended: [ErrLost], [ErrReleased] or [ErrClosed].
func (h *Hold) Err() error {
	h.holding.mu.Lock()
	defer h.holding.mu.Unlock()
	return h.ended
}

// Deadline is the instant until which the lock can be trusted, on the monotonic clock of this process. Each renewal by the
// watchdog moves it. See package watchdog for how it is reckoned.
func (h *Hold) Deadline() time.Time { return h.holding.lease.Deadline() }

// Valid tells whether the lock can be trusted at this instant. It reads the clock itself: code that may have been
// stopped for long (a paused process, a long garbage collection) should ask right before it writes, because its
// context hears of the deadline only when timers run again. Even so, only a fencing token protects a write that is
// already on its way.
func (h *Hold) Valid() bool {
	return h.Err() == nil && time.Now().Before(h.Deadline())
}

// Unlock releases this level. The lock becomes free, and a waiter is woken, when the outermost level is released; levels
// may be released in any order.
//
// It works when ctx has ended already, and does not stop when ctx ends: it takes at most Options.CommandTimeout.
// It returns
//   - [ErrNotHeld] if this hold was released before;
//   - [ErrLost] if the lock was lost before: what was done under it may have overlapped with another holder's work;
//   - [ErrOutcomeUnknown] if Redis did not answer in time: the release is repeated in the background until the
//     lease ends, and the hold is over for this process;
//   - a *[ServerError] if Redis refuses: the hold is over for this process, and the lock is free when its lease ends.
func (h *Hold) Unlock(ctx context.Context) (err error) {
	defer wrap(&err, h.Name())
	return h.holding.release(h)
}

// end ends the hold for the given reason. The holding's mutex must be held; what is returned is to be called after
// it was released, because it runs the code of whoever derived a context.
func (h *Hold) end(reason error) (cancel func()) {
	if h.ended != nil {
		return func() {}
	}
	h.ended = reason
	if h.done != nil {
		close(h.done)
	}
	if h.cancel == nil {
		return func() {}
	}
	return func() { h.cancel(reason) }
}
