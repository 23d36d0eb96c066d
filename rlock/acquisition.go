package rlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/compose"
	"holdfast/internal/owner"
	"holdfast/internal/waitqueue"
	"holdfast/watchdog"
)

// acquisition is one owner's lock from the first level to the last release. The watchdog has it
// until the last release is about to be sent. Each command is sent with its session locked.
type acquisition struct {
	client  *Client
	lock    *Lock
	session *lockSession
	token   owner.Token // identifies the owner in this process
	owner   string      // the name of this acquisition in Redis
	fence   int64       // the fencing token, if the lock is fenced
	streak  waitqueue.Streak
	lease   watchdog.Lease

	late *request     // of this owner, may still be executed at any time; nil if there is none
	part compose.Part // of a RedLock, which a loss here does not end; nil for other locks

	tracedLevels atomic.Value // its *levelsTrace, if there is one

	mu sync.Mutex
	// longestLease is the longest lease that a renewal, an Extend or a nested lock has asked for,
	// and that Redis may have given without a reply. Guarded by mu; 0 if there is none.
	longestLease time.Duration

	began *time.Time // nil without Options.MaxHold

	unrenewed error // guarded by mu; why it is not renewed although it was to be; nil if it is

	levels []*level // guarded by mu; not released yet, outermost first
	reason error    // guarded by mu; why the acquisition ended; nil if it has not

	// Side by side, because an acquisition just fits in 640 bytes of memory; the next size is 704.
	state      state // guarded by mu
	age        age   // guarded by mu
	registered bool  // a grant message may still arrive, although it was acquired by asking
	besides    bool  // guarded by mu; the owner has asked for the other mode, too

	// Preallocated for the usual case, so that an acquisition is one allocation.
	outermost level
	level1    [1]*level
	home      lockSession
}

// These implement [Acquisition], together with Extend and Release.

func (a *acquisition) Name() string        { return a.lock.name }
func (a *acquisition) Owner() string       { return a.owner }
func (a *acquisition) Token() int64        { return a.fence }
func (a *acquisition) Deadline() time.Time { return a.lease.Deadline() }

// key identifies the acquisition among the losses.
func (a *acquisition) key() lossKey { return lossKey{a.session.Key(), a.lock.mode} }

// begin registers with the watchdog once Redis has given the lock, and returns the first level.
func (a *acquisition) begin(ctx context.Context, deadline time.Time, renew bool) *Hold {
	c, level := a.client, &a.outermost
	a.levels = append(a.level1[:0], level)
	hold := a.newHold(ctx, level, renew)
	if renew {
		a.MayLast(c.options.WatchdogLease)
	}
	if c.options.MaxHold > 0 {
		began := time.Now()
		a.began = &began
	}
	a.lease.Group, a.lease.Value = c.transport.Node(a.lock.name), a
	a.lease.OnLost = func(l *watchdog.Lease, reason error) { l.Value.(*acquisition).lose(reason) }
	if a.session != &a.home { // else the owner is new, and has lost nothing
		c.losses.Forget(a.key())
	}
	c.transport.Wrote()
	addTo(a.session, a)
	a.watch(deadline, renew)
	c.introduction.used()
	return hold
}

// newHold returns the hold of a new level.
func (a *acquisition) newHold(ctx context.Context, l *level, renew bool) *Hold {
	carrier := owner.Of(ctx)
	h := &Hold{level: l, parent: ctx, carrier: carrier}
	l.acquisition, l.owner, l.renew = a, a.token, renew
	if a.part == nil { // else a worker has acquired it for another goroutine
		l.site, l.goroutine = a.client.here(), a.client.goroutine()
	}
	if renew {
		l.hold = h
	}
	if carrier != nil && carrier.Root != nil {
		l.root = carrier.Root
		l.root.Add(l)
	}
	return h
}

// push adds a level that Redis already has.
func (a *acquisition) push(ctx context.Context, deadline time.Time, renew bool) (*Hold, error) {
	level := new(level)
	hold := a.newHold(ctx, level, renew)
	a.mu.Lock()
	ended, empty, closing := a.state != active, len(a.levels) == 0, a.client.isClosing()
	if !ended && !empty && !closing {
		a.levels = append(a.levels, level)
	}
	a.mu.Unlock()
	if ended || empty || closing {
		level.end(ErrReleased)
	}
	switch {
	case ended:
		return nil, a.conclude()
	case empty: // its release has begun
		removeFrom(a.session, a)
		return nil, ErrReleased
	case closing: // Close may have begun to release what it found
		return nil, ErrClosed
	}
	if err := a.extended(deadline); err != nil {
		return nil, err
	}
	if renew {
		a.SetRenew(true)
	}
	return hold, nil
}

// depth returns the number of levels; 0 once the acquisition has ended.
func (a *acquisition) depth() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.levels)
}

// beginInnermost begins the release of the innermost level whose release has not begun, and returns
// it; nil if there is none. Concurrent callers get different levels.
func (a *acquisition) beginInnermost() *level {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, level := range slices.Backward(a.levels) {
		if level.beginRelease() {
			return level
		}
	}
	return nil
}

// end ends the acquisition with its levels. It returns false if another reason came first, but only
// once all levels have ended.
func (a *acquisition) end(e event, reason error) bool {
	a.mu.Lock()
	first := a.state == active
	if first {
		a.state.step(e)
		a.reason = reason
		if e == lose {
			// This comes before the loss is visible: the owner's next attempt must not find what it
			// was told is lost, and Unlock without a hold must find it among the losses.
			if a.part == nil && len(a.levels) > 0 {
				a.client.losses.Add(a.key(), a)
			}
			removeFrom(a.session, a)
		}
	}
	a.mu.Unlock()
	reason = a.conclude()
	if first && a.part != nil {
		// Options.ReleaseOnClose has released it; or the part itself has, and ignores this call.
		if errors.Is(reason, ErrReleased) {
			reason = ErrClosed
		}
		a.part.Ended(reason)
	}
	return first
}

// conclude ends all levels of an acquisition that has ended, and returns why; nil if it lasts.
// Inner ones are first: their contexts may derive from outer ones, and must not end before them.
func (a *acquisition) conclude() error {
	a.mu.Lock()
	reason := a.reason
	var few [4]*level // usually enough, and on the stack
	levels := append(few[:0], a.levels...)
	a.mu.Unlock()
	if reason == nil {
		return nil
	}
	for _, level := range slices.Backward(levels) {
		level.end(reason)
	}
	return reason
}

// step changes the state of an acquisition that has ended.
func (a *acquisition) step(e event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.step(e)
}

// SetRenew sets whether the watchdog renews the lease.
func (a *acquisition) SetRenew(renew bool) {
	if renew {
		a.MayLast(a.client.options.WatchdogLease)
	}
	a.client.watchdog.SetRenew(&a.lease, renew)
}

// MayLast notes, before the command, that Redis will be asked to keep the lock for lease.
func (a *acquisition) MayLast(lease time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.longestLease = max(a.longestLease, lease)
}

// cleanup returns the cleanup of an acquisition that has ended.
func (a *acquisition) cleanup() cleanup {
	a.mu.Lock()
	lasts := max(time.Until(a.lease.Deadline()), a.longestLease)
	a.mu.Unlock()
	cu := cleanup{lock: a.lock, request: request{owner: a.owner}, until: time.Now().Add(lasts)}
	if a.lock.sharesKey {
		cu.session, cu.until = a.session, cu.until.Add(a.client.options.CommandTimeout)
	}
	return cu
}

// cleanUpLate ends a release or a loss. It cleans up after a request that may still be executed.
func (a *acquisition) cleanUpLate() {
	if a.registered {
		a.client.releasing.Delete(a.owner)
	}
	if a.late != nil {
		cu := a.cleanup()
		lasts := max(time.Until(cu.until), a.late.lasts(a.lock, 0), a.client.options.WatchdogLease)
		cu.request, cu.until, cu.retry = *a.late, time.Now().Add(lasts), true
		a.client.cleaner.add(cu)
	}
}
