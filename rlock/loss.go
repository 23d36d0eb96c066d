package rlock

import (
	"errors"

	"holdfast/watchdog"
)

// lose ends an acquisition that can no longer be trusted. It must not block: the contexts of other
// holds end on the same goroutine. These call it:
//   - the watchdog: the deadline passes (schedule.go) or a renewal finds the lock gone (renew.go);
//   - Extend and a nested lock: the lock is gone, or the reply is late (extend.go, batch.go);
//   - a release after the deadline, or one that finds the lock gone (release.go);
//   - Detach after the deadline (attach.go);
//   - ForceUnlock of this client (lock.go);
//   - for a read hold, a release of the same writer that left nothing of it or has had no reply
//     (unconfirmed.go).
//
// For a RedLock see check and outcome in package redlock, for a MultiLock partEnded.
func (a *acquisition) lose(reason error) {
	a.unwatch()
	err := a.loss(reason)
	if !a.end(lose, err) {
		return
	}
	a.report(err)
	a.endUntrusted() // before a cleanup lets others in
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
		return expired{"no renewal succeeded before its lease ended"}
	}
	return expired{"its lease ended before it was released: take a longer one, Extend it, or use " +
		"rlock.Watchdog; Leave the hold if the lease is meant to run out"}
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
