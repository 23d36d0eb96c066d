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

// acquisition is the lock of an owner from the first level to the last release. A level is one
// successful call of the owner within the acquisition. The watchdog has the acquisition until the
// last release is about to be sent. Each command is sent with the session locked.
type acquisition struct {
	client  *Client
	lock    *Lock
	session *lockSession
	token   owner.Token // identifies the owner in this process
	owner   string      // the name of this acquisition in Redis
	fence   int64       // the fencing token, if the lock is fenced
	streak  waitqueue.Streak
	watched watchdog.Lease

	late *request     // a request of this owner that Redis may still execute; nil if there is none
	part compose.Part // of a RedLock, which survives a loss of this part; nil for other locks

	tracedLevels atomic.Value // of *levelsTrace; empty without a trace

	mu sync.Mutex
	// longestLease is the longest lease that Redis may have given without a reply, after a renewal, an
	// Extend or a nested call. Guarded by mu; 0 if there is none.
	longestLease time.Duration

	began *time.Time // nil without Options.MaxHold

	keep atomic.Pointer[keeping] // nil without a hold of AtLeast

	unrenewed error // guarded by mu; why the watchdog does not renew the lease; nil if it does

	levels []*level // guarded by mu; the levels that are not released yet, outermost first
	reason error    // guarded by mu; why the acquisition ended; nil while it lasts

	// These fields are side by side, because an acquisition just fits in 640 bytes of memory. The next
	// size is 704.
	state      state // guarded by mu
	age        age   // guarded by mu
	registered bool  // a grant message may still arrive, although the owner got the lock by asking
	besides    bool  // guarded by mu; the owner has also asked for the other mode
	noTurns    bool  // guarded by the session; passOn does not pass the name on

	// These values are preallocated for the usual case, so that an acquisition needs one allocation.
	outermost level
	level1    [1]*level
	home      lockSession
}

// These methods implement [Acquisition], together with Extend and Release.

func (a *acquisition) Name() string        { return a.lock.name }
func (a *acquisition) Owner() string       { return a.owner }
func (a *acquisition) Token() int64        { return a.fence }
func (a *acquisition) Deadline() time.Time { return a.watched.Deadline() }

// Lost implements [watchdog.Subject].
func (a *acquisition) Lost(_ *watchdog.Lease, reason error) { a.lose(reason) }

// key identifies the acquisition among the losses.
func (a *acquisition) key() lossKey { return lossKey{a.session.Key(), a.lock.mode} }

// enter registers an acquisition with its session and the watchdog after Redis has given the lock.
// The outermost level has its fields already, see newHold.
func (a *acquisition) enter(deadline time.Time, renew bool) {
	c := a.client
	a.levels = append(a.level1[:0], &a.outermost)
	if renew {
		a.longestLease = c.options.WatchdogLease
	}
	if c.options.MaxHold > 0 {
		began := time.Now()
		a.began = &began
	}
	if a.session != &a.home { // else the owner is new, and OpenNew began the use
		c.losses.Forget(a.key())
		a.session.Use() // until leaveSession
	}
	c.transport.Wrote()
	a.session.Do(func(ow *owned) { ow.held[a.lock.mode] = a })
	c.owners.mu.Lock()
	found := c.owners.all[a.owner]
	found[a.lock.mode] = a
	c.owners.all[a.owner] = found
	c.owners.mu.Unlock()
	a.watched.Subject = a
	c.watchdog.Add(&a.watched, deadline, renew)
	if c.introduction.state.Load() == due {
		c.introduction.send()
	}
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
	h.watchCaller()
	return h
}

// push adds a level after Redis has the level.
func (a *acquisition) push(ctx context.Context, deadline time.Time, renew bool) (*Hold, error) {
	if err := a.extended(deadline); err != nil {
		return nil, err
	}
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
	case closing: // Close may have begun to release the holds that it found
		return nil, ErrClosed
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

// beginInnermost begins the release of a level, and returns the level. This is the innermost level
// whose release has not begun, or nil. Concurrent callers get different levels.
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

// end ends the acquisition with its levels. If another reason came first, end returns false, but
// only after all levels have ended.
func (a *acquisition) end(e event, reason error) bool {
	a.mu.Lock()
	first := a.state == active
	if first {
		a.state.step(e)
		a.reason = reason
		if e == lose {
			// This comes before the loss is visible. After the owner learns of the loss, its next attempt
			// must not find the lost acquisition, and Unlock without a hold must find the acquisition among
			// the losses.
			if a.part == nil {
				a.client.losses.Add(a.key(), a)
			}
			a.leaveSession()
		}
	}
	a.mu.Unlock()
	reason = a.conclude()
	if first && a.part != nil {
		// Options.ReleaseOnClose has released the part, or the RedLock has, and ignores this call.
		if errors.Is(reason, ErrReleased) {
			reason = ErrClosed
		}
		a.part.Ended(reason)
	}
	return first
}

// conclude ends all levels of an ended acquisition, and returns the reason. conclude returns nil if
// the acquisition lasts. Inner levels end first, because their contexts may derive from the
// contexts of outer levels, and must not end because of those.
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

// step changes the state of an ended acquisition.
func (a *acquisition) step(e event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.step(e)
}

// emptied ends an acquisition without levels, unless the acquisition has ended before. The caller
// holds mu. emptied leaves the session first, because a call that learns of the end must not find
// the name that is being released.
func (a *acquisition) emptied(e event) {
	a.leaveSession()
	if a.state == active {
		a.state.step(e)
		a.reason = ErrReleased
	}
}

// leaveSession removes an acquisition from its session. A second call does nothing.
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

// MayLast notes that Redis may keep the lock for lease. The caller calls MayLast before the
// command.
func (a *acquisition) MayLast(lease time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.longestLease = max(a.longestLease, lease)
}

// cleanup returns the cleanup of an ended acquisition.
func (a *acquisition) cleanup() cleanup {
	a.mu.Lock()
	lasts := max(time.Until(a.watched.Deadline()), a.longestLease)
	a.mu.Unlock()
	cu := cleanup{lock: a.lock, request: request{owner: a.owner}, until: time.Now().Add(lasts)}
	if a.lock.sharesKey {
		cu.session, cu.until = a.session, cu.until.Add(a.client.options.CommandTimeout)
	}
	switch k, lost := a.kept(), a.lostError(); {
	case lost == nil:
		cu.keep = k
	case errors.Is(lost, watchdog.ErrExpired):
		cu.from = k.until // the lease in Redis ends a little later, and nobody cuts it short
	}
	return cu
}

// cleanUpLate runs at the end of a release or a loss. cleanUpLate schedules the cleanup of a
// request that Redis may still execute.
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
	active      state = iota // the acquisition has a level or more
	releasing                // the last level was released, but Redis has not confirmed that
	released                 // Redis has confirmed the release, or a local turn has passed the lock on
	unconfirmed              // nobody waits for the confirmation
	lost                     // the acquisition can no longer be trusted, or never could
	closed                   // the client was closed
	left                     // the holder lets the lease end without a release
	states
)

// event changes the state of an acquisition.
type event uint8

const (
	release event = iota // the owner releases the last level
	confirm              // Redis confirms the release, or a local turn passes the lock on
	giveUp               // nobody waits for the confirmation any more
	lose                 // the acquisition is found lost
	shut                 // the client closes
	leave                // the owner leaves the last level, so that the lease ends
	events
)

// transitions lists the next state for each state and event. A missing transition is a bug. No
// transition leads to active, because active is the zero value.
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

// lose ends an acquisition that can no longer be trusted. lose must not block, because the contexts
// of other holds end on the same goroutine. The callers are
//
//   - package watchdog, if the deadline passes (schedule.go) or a renewal finds the lock gone;
//   - Extend and a nested call, if the lock is gone or the reply is late (extend.go, batch.go);
//   - a release after the deadline, or a release that finds the lock gone (release.go);
//   - Detach after the deadline (attach.go);
//   - ForceUnlock of this client (lock.go), even for a hold that a local turn has just begun
//     (turn.go);
//   - for a read hold, a release by the same writer that removed the read hold or got no reply
//     (readwrite.go).
//
// For a RedLock see check and outcome in package redlock, for a MultiLock see partEnded.
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
		// A command without a reply, or the other mode, may have kept the lock, unless Redis has reported
		// that the lock is gone. Otherwise the lock expires a moment after the deadline.
		a.client.cleaner.add(a.cleanup())
	}
}

// report logs a loss.
func (a *acquisition) report(err *LostError) {
	if a.part == nil {
		a.client.warn(err.Error(), "lock", a.lock.name, "owner", a.owner)
	}
}

// Expiry returns why the deadline passed, and advice for the holder. The error matches ErrExpired.
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

// expired is an ErrExpired with a longer text.
type expired struct{ text string }

func (e expired) Error() string { return e.text }
func (e expired) Unwrap() error { return watchdog.ErrExpired }

// lostError returns why the lock was lost, or nil if it was not lost.
func (a *acquisition) lostError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(a.reason, ErrLost) {
		return a.reason
	}
	return nil
}

// lossKey identifies the losses of an owner, by the session with a lock and the mode.
type lossKey struct {
	session sessionKey
	mode    mode
}

// unlockLost unlocks the innermost level of a lost acquisition and returns the loss, or nil without
// a loss.
func (c *Client) unlockLost(key lossKey) error {
	for _, a := range c.losses.Of(key) {
		if level := a.beginInnermost(); level != nil {
			_, _, err := a.releaseLevel(level)
			return err // nothing was sent, so the session need not be locked
		}
	}
	return nil
}
