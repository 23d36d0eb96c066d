package rlock

import (
	"context"
	"sync"
	"sync/atomic"

	"holdfast/internal/owner"
)

// level is what a [Hold] stands for. It is apart from the Hold, because this package keeps it until
// it is released: a Hold that no caller can reach any more is found in dropped.go.
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
	l.callbacks, l.cancel, l.hold, l.reachable = nil, nil, nil, nil
	l.mu.Unlock()
	l.trace.Load().ended(l, reason)
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
