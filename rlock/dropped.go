package rlock

import (
	"errors"
	"slices"
	"weak"

	"holdfast/internal/owner"
)

// A level is dropped if no caller can release it: its hold is unreachable, and so is each context
// that carries its owner, with which Lock.Unlock could. Renewing it would keep others out for ever.
// One whose end somebody asked to hear of, by Hold.Done, is meant to be held for ever.
//
// Only callers keep a Hold and its context alive: the client has the level. Until the first renewal
// it has the Hold as well, so that a lock that is held for a moment costs nothing. From then on
// each renewal asks whether the garbage collector has found it unreachable.

var errDropped = errors.New("its hold was dropped without Unlock")

// reachable is how callers can reach a level.
type reachable struct {
	hold     weak.Pointer[Hold]
	carriers []weak.Pointer[owner.Carrier] // of its owner, when it was acquired
}

// watch makes what the client knows of a hold weak.
func watch(h *Hold) *reachable {
	r := &reachable{hold: weak.Make(h)}
	for c := h.carrier; c != nil && c.Token == h.level.owner; c = c.Outer {
		r.carriers = append(r.carriers, weak.Make(c))
	}
	return r
}

// dropped reports whether no caller can release the level any more. Its first call begins to watch.
func (l *level) dropped() bool {
	for whole := l.whole.Load(); whole != nil; whole = l.whole.Load() {
		l = whole
	}
	l.mu.Lock()
	if l.hold != nil {
		l.reachable, l.hold = watch(l.hold), nil
	}
	r, awaited := l.reachable, l.done != nil
	l.mu.Unlock()
	if r == nil || awaited || r.hold.Value() != nil {
		return false
	}
	// A context without a hold is nobody's. Its parent may last, and keep the carriers alive.
	l.cancelContext(&LostError{Lock: l.acquisition.Name(), Reason: errDropped})
	return !slices.ContainsFunc(r.carriers,
		func(c weak.Pointer[owner.Carrier]) bool { return c.Value() != nil })
}

// findDropped is called before a renewal. It stops the renewal for levels that were dropped, and
// logs that.
func (a *acquisition) findDropped() {
	a.mu.Lock()
	levels := slices.Clone(a.levels)
	a.mu.Unlock()
	for _, l := range levels {
		if l.dropped() && a.stopRenewal(l) {
			a.client.warnDropped(a.lock.name, a.owner, l.site)
		}
	}
}

// warnDropped logs that a hold was dropped.
func (c *Client) warnDropped(lock, owner string, site callSite) {
	c.warn("holdfast: a hold was dropped without Unlock, so that nobody can release its lock: it is "+
		"not renewed any more, and free when its lease ends; "+site.acquiredAt(),
		"lock", lock, "owner", owner)
}

// stopRenewal stops the renewal for a level, and reports whether there was one.
func (a *acquisition) stopRenewal(l *level) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state != active || !l.renew || !slices.Contains(a.levels, l) {
		return false
	}
	l.renew = false
	if a.renewForLevels(); !a.renews() {
		a.unrenewed = errDropped
	}
	return true
}

// renews reports whether a level asks for the watchdog. It is called with mu held.
func (a *acquisition) renews() bool {
	return slices.ContainsFunc(a.levels, func(l *level) bool { return l.renew })
}

// renewForLevels makes the watchdog renew if a level asks for it. It is called with mu held: a
// level that is added afterwards may renew.
func (a *acquisition) renewForLevels() { a.client.watchdog.SetRenew(&a.lease, a.renews()) }
