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
	"holdfast/internal/transition"
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
	watched watchdog.Lease

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
func (a *acquisition) Deadline() time.Time { return a.watched.Deadline() }

// Lost implements [watchdog.Subject].
func (a *acquisition) Lost(_ *watchdog.Lease, reason error) { a.lose(reason) }

// key identifies the acquisition among the losses.
func (a *acquisition) key() lossKey { return lossKey{a.session.Key(), a.lock.mode} }

// begin registers with the watchdog once Redis has given the lock, and returns the first level.
func (a *acquisition) begin(ctx context.Context, deadline time.Time, renew bool) *Hold {
	c, level := a.client, &a.outermost
	a.levels = append(a.level1[:0], level)
	hold := a.newHold(ctx, level, renew)
	if renew {
		a.longestLease = c.options.WatchdogLease
	}
	if c.options.MaxHold > 0 {
		began := time.Now()
		a.began = &began
	}
	if a.session != &a.home { // else the owner is new: it has lost nothing, and OpenNew began the use
		c.losses.Forget(a.key())
		a.session.Use() // until leaveSession
	}
	c.transport.Wrote()
	a.session.Do(func(ow *owned) { ow.held[a.lock.mode] = a })
	c.owners.add(a)
	a.watched.Group, a.watched.Subject = c.transport.Node(a.lock.name), a
	c.watchdog.Add(&a.watched, deadline, renew)
	if c.introduction.state.Load() == due {
		c.introduction.send()
	}
	return hold
}

// newHold returns the hold of a new level.
func (a *acquisition) newHold(ctx context.Context, l *level, renew bool) *Hold {
	_, ownerContext := owner.From(ctx)
	h := &Hold{level: l, parent: ctx, ownerContext: ownerContext}
	l.acquisition, l.owner, l.renew = a, a.token, renew
	o := &a.client.options
	if (o.Debug || o.MaxHold > 0) && a.part == nil { // a worker acquires a part for another goroutine
		l.site, l.goroutine = a.client.here(), a.client.goroutine()
	}
	if renew {
		l.hold = h
	}
	if ownerContext != nil && ownerContext.Root != nil {
		l.root = ownerContext.Root
		l.root.Add(l)
	}
	return h
}

// push adds a level that Redis already has.
func (a *acquisition) push(ctx context.Context, deadline time.Time, renew bool) (*Hold, error) {
	level := new(level)
	hold := a.newHold(ctx, level, renew)
	a.mu.Lock()
	ended, closing := a.state != active, a.client.isClosing()
	if !ended && !closing {
		a.levels = append(a.levels, level)
	}
	a.mu.Unlock()
	if ended || closing {
		level.end(ErrReleased)
	}
	switch {
	case ended:
		return nil, a.conclude()
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
			if a.part == nil {
				a.client.losses.Add(a.key(), a)
			}
			a.leaveSession()
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

// emptied ends an acquisition whose last level is gone, unless it has ended. It is called with mu
// held. A call that learns of the end must not find the name that is being released.
func (a *acquisition) emptied(e event) {
	a.leaveSession()
	if a.state == active {
		a.state.step(e)
		a.reason = ErrReleased
	}
}

// leaveSession removes an acquisition from its session. It may be called more than once.
func (a *acquisition) leaveSession() {
	a.session.Do(func(ow *owned) {
		if h := &ow.held[a.lock.mode]; *h == a {
			*h = nil
			a.session.Close()
		}
	})
}

// SetRenew sets whether the watchdog renews the lease.
func (a *acquisition) SetRenew(renew bool) {
	if renew {
		a.MayLast(a.client.options.WatchdogLease)
	}
	a.client.watchdog.SetRenew(&a.watched, renew)
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
	lasts := max(time.Until(a.watched.Deadline()), a.longestLease)
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

// state is the state of an acquisition. docs/architecture.md draws the transitions.
type state uint8

const (
	active      state = iota // with one level or more
	releasing                // the last level is released; Redis has not confirmed it
	released                 // Redis has confirmed it
	unconfirmed              // nobody waits for the confirmation
	lost                     // it can no longer be trusted, or never could
	closed                   // the client was closed
	left                     // its lease runs out, as its holder wants
	states
)

// event changes the state of an acquisition.
type event uint8

const (
	release event = iota // the last level is released
	confirm              // Redis confirms the release
	giveUp               // nobody waits for the confirmation any more
	lose                 // it is found lost
	shut                 // the client closes
	leave                // the last level is left, to let the lease run out
	events
)

// transitions lists the next state for each state and event. A missing transition is a bug; none
// leads to active, the zero value.
var transitions = [states][events]state{
	active:      {release: releasing, lose: lost, shut: closed, leave: left},
	releasing:   {confirm: released, giveUp: unconfirmed, lose: lost},
	unconfirmed: {confirm: released},
	released:    {giveUp: released}, // the reply came just as its caller left
	closed:      {confirm: released, giveUp: unconfirmed, lose: lost},
}

func (s *state) step(e event) {
	next := transitions[*s][e]
	if next == active {
		transition.Missing(*s, e)
		return
	}
	*s = next
}

// lose ends an acquisition that can no longer be trusted. It must not block: the contexts of other
// holds end on the same goroutine. These call it:
//   - package watchdog: the deadline passes (schedule.go), or a renewal finds the lock gone;
//   - Extend and a nested lock: the lock is gone, or the reply is late (extend.go, batch.go);
//   - a release after the deadline, or one that finds the lock gone (release.go);
//   - Detach after the deadline (attach.go);
//   - ForceUnlock of this client (lock.go);
//   - for a read hold, a release of the same writer that left nothing of it or has had no reply
//     (readwrite.go).
//
// For a RedLock see check and outcome in package redlock, for a MultiLock partEnded.
func (a *acquisition) lose(reason error) {
	a.unwatch()
	err := a.loss(reason)
	if !a.end(lose, err) {
		return
	}
	a.report(err)
	if a.lock.sharesKey {
		a.endUntrusted() // before a cleanup lets others in
	}
	a.cleanUpLate()
	a.mu.Lock()
	kept := a.longestLease > 0 || a.besides
	a.mu.Unlock()
	if errors.Is(reason, errUnconfirmed) || errors.Is(reason, watchdog.ErrExpired) && kept {
		// A command without a reply, or the other mode, may have kept the lock, unless Redis has said
		// that it is gone. Otherwise it expires by itself, a moment after the deadline.
		a.client.cleaner.add(a.cleanup())
	}
}

// report logs a loss.
func (a *acquisition) report(err *LostError) {
	if a.part == nil {
		a.client.warn(err.Error(), "lock", a.lock.name, "owner", a.owner)
	}
}

// Expiry returns why the deadline passed, with what the holder could do. It matches ErrExpired.
func (a *acquisition) Expiry() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.unrenewed != nil:
		return expired{a.unrenewed.Error()}
	case a.renews():
		return expired{"no renewal succeeded before the lease ended"}
	}
	return expired{"the lease ended before the release; use a longer lease, Extend the hold, or use " +
		"rlock.Watchdog, or Leave the hold if the lease is meant to run out"}
}

// expired is an ErrExpired that says more.
type expired struct{ text string }

func (e expired) Error() string { return e.text }
func (e expired) Unwrap() error { return watchdog.ErrExpired }

// lostError returns why the lock was lost; nil if it was not.
func (a *acquisition) lostError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(a.reason, ErrLost) {
		return a.reason
	}
	return nil
}

// lossKey identifies what an owner lost, by its session with a lock and the mode.
type lossKey struct {
	session sessionKey
	mode    mode
}

// unlockLost unlocks the innermost level of a lost acquisition and returns the loss; nil if none.
func (c *Client) unlockLost(key lossKey) error {
	for _, a := range c.losses.Of(key) {
		if level := a.beginInnermost(); level != nil {
			_, err := a.releaseLevel(level)
			return err // nothing was sent, so the session need not be locked
		}
	}
	return nil
}
