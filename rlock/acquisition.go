package rlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/hooks"
	"holdfast/internal/owner"
	"holdfast/internal/waitqueue"
	"holdfast/watchdog"
)

// acquisition is one owner's lock from the first level to the last release. It owns all state of
// that: it registers with the watchdog when it begins, leaves it before it sends the last release,
// and sends each command with its session locked.
type acquisition struct {
	client  *Client
	lock    *Lock
	session *lockSession
	token   owner.Token // in this process
	owner   string      // of this acquisition, in Redis
	fence   int64       // its number, if the lock is fenced
	streak  waitqueue.Streak
	lease   watchdog.Lease

	// late is a request of this owner that may be executed at any time still; nil if there is none.
	late *request
	// registered says that a grant message may still arrive, although the lock was acquired by
	// asking.
	registered bool

	// part is set if this is what a RedLock has on one node: its loss is not that of the lock.
	part hooks.Part

	// longestLease is the longest lease, in nanoseconds, that Redis may give it on its own account: by a
	// renewal, or by a nested lock, that is executed without our hearing of it. 0 if there is
	// neither.
	longestLease atomic.Int64

	mu     sync.Mutex
	levels []*Hold // guarded by mu; those not released, outermost first
	state  state   // guarded by mu
	reason error   // guarded by mu; why nothing is held any more

	// Room for what nearly every acquisition has, so that it is one piece of memory.
	outermost Hold
	level1    [1]*Hold
	home      lockSession
}

var _ Acquisition = (*acquisition)(nil)

// Name returns the lock's.
func (a *acquisition) Name() string { return a.lock.name }

// Owner returns that in Redis.
func (a *acquisition) Owner() string { return a.owner }

// Token returns the fence.
func (a *acquisition) Token() int64 { return a.fence }

// Deadline returns until when the lease can be trusted.
func (a *acquisition) Deadline() time.Time { return a.lease.Deadline() }

// key returns what identifies the acquisition when it is lost.
func (a *acquisition) key() lossKey { return lossKey{a.session.Key(), a.lock.kind.mode()} }

// level makes a level, which is still to be put among levels.
func (a *acquisition) level(ctx context.Context, renew bool) *Hold {
	h := &a.outermost
	if h.acquisition != nil {
		h = new(Hold)
	}
	h.acquisition, h.parent, h.owner, h.renew = a, ctx, a.token, renew
	return h
}

// begin starts to watch over what Redis has given, and returns the first level.
func (a *acquisition) begin(ctx context.Context, deadline time.Time, renew bool) *Hold {
	c, level := a.client, a.level(ctx, renew)
	a.levels = append(a.level1[:0], level)
	if renew {
		a.mayLast(c.options.WatchdogLease)
	}
	a.lease.Group = c.transport.Node(a.lock.name)
	a.lease.Value = a
	a.lease.OnLost = a.lose
	c.losses.Forget(a.key())
	keep(a.session, a)
	c.watchdog.Add(&a.lease, deadline, renew)
	return level
}

// push adds a level, after Redis has it.
func (a *acquisition) push(ctx context.Context, deadline time.Time, renew bool) (*Hold, error) {
	a.mu.Lock()
	level := a.level(ctx, renew)
	if a.state != holding {
		a.mu.Unlock()
		return nil, a.conclude()
	}
	a.levels = append(a.levels, level)
	a.mu.Unlock()
	a.extend(deadline)
	if renew {
		a.mayLast(a.client.options.WatchdogLease)
		a.client.watchdog.SetRenew(&a.lease, true)
	}
	return level, nil
}

// extend notes that Redis keeps the lock until deadline.
func (a *acquisition) extend(deadline time.Time) { a.client.watchdog.Extend(&a.lease, deadline) }

// depth returns the number of levels, 0 when nothing is held any more.
func (a *acquisition) depth() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.levels)
}

// why returns why nothing is held any more; nil if something is.
func (a *acquisition) why() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reason
}

// lostError returns why the lock was lost; nil if it was not.
func (a *acquisition) lostError() error {
	if err := a.why(); errors.Is(err, ErrLost) {
		return err
	}
	return nil
}

// conclude waits until all levels have ended, and returns why; nil if the lock is still held.
func (a *acquisition) conclude() error {
	err := a.why()
	if err != nil {
		a.endLevels()
	}
	return err
}

// claimInnermost picks the level that was taken last and is not being released, for the caller to
// release; nil if there is none. Of callers at the same time each gets another.
func (a *acquisition) claimInnermost() *Hold {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, level := range slices.Backward(a.levels) {
		if level.claimRelease() {
			return level
		}
	}
	return nil
}

// end ends the acquisition with all its levels: this process holds nothing any more. It returns
// false if another reason came first, but not before all levels have ended.
func (a *acquisition) end(e event, reason error) bool {
	a.mu.Lock()
	first := a.state == holding
	if first {
		a.state.step(e)
		a.reason = reason
		if e == lose {
			// Before anybody hears of it: the owner's next attempt must not find what it was told
			// is lost.
			a.remember()
			drop(a.session, a)
		}
	}
	a.mu.Unlock()
	reason = a.endLevels()
	if first && a.part != nil {
		if errors.Is(
			reason,
			ErrReleased,
		) { // by Options.ReleaseOnClose, or by the part, which knows better
			reason = ErrClosed
		}
		a.part.Ended(reason)
	}
	return first
}

// endLevels ends all levels for the reason of the acquisition, and returns it. The innermost is the
// first to end: its context mostly derives from those around it, and must not end before its hold.
func (a *acquisition) endLevels() error {
	a.mu.Lock()
	reason := a.reason
	var few [4]*Hold // mostly enough, and not garbage
	levels := append(few[:0], a.levels...)
	a.mu.Unlock()
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

// lose ends an acquisition that the watchdog, or a reply, says cannot be trusted any more. It does
// not block: the contexts of other holds end on the same goroutine.
func (a *acquisition) lose(reason error) {
	a.client.watchdog.Remove(&a.lease)
	err := &LostError{Lock: a.lock.name, Reason: reason}
	if errors.Is(reason, watchdog.ErrGone) {
		err.Reason = a.lock.kind.gone(a)
	}
	if !a.end(lose, err) {
		return
	}
	a.report(err)
	a.cleanUpLate()
	a.lock.kind.ended(a)
	kept := a.longestLease.Load() > 0 || a.lock.kind.outlives()
	if errors.Is(reason, errUnconfirmed) || errors.Is(reason, watchdog.ErrExpired) && kept {
		// A command without a reply may have kept the lock for an owner that has given it up. Not
		// if Redis has said that it is gone.
		a.client.cleaner.add(a.cleanup())
	}
}

// report tells the operator of a loss.
func (a *acquisition) report(err *LostError) {
	if a.part == nil {
		a.client.warn(err.Error(), "lock", a.lock.name, "owner", a.owner)
	}
}

// mayLast notes that Redis may be asked to keep the lock for lease, before it is.
func (a *acquisition) mayLast(lease time.Duration) {
	for {
		longest := a.longestLease.Load()
		if int64(lease) <= longest || a.longestLease.CompareAndSwap(longest, int64(lease)) {
			return
		}
	}
}

// cleanup returns what Redis may keep of an acquisition that is over.
func (a *acquisition) cleanup() cleanup {
	until := a.lease.Deadline()
	if kept := time.Now().Add(time.Duration(a.longestLease.Load())); kept.After(until) {
		until = kept
	}
	l := cleanup{lock: a.lock, request: request{owner: a.owner}, until: until}
	if a.lock.kind.outlives() {
		l.until = until.Add(a.client.options.CommandTimeout)
		l.session = a.session
	}
	return l
}

// cleanUpLate cleans up after a request that may be executed still, when the acquisition has ended.
func (a *acquisition) cleanUpLate() {
	if a.late == nil {
		return
	}
	l := a.cleanup()
	lasts := max(time.Until(l.until), a.late.lasts(a.lock, 0), a.client.options.WatchdogLease)
	l.request, l.until, l.retry = *a.late, time.Now().Add(lasts), true
	a.client.cleaner.add(l)
}
