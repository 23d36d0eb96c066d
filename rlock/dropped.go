package rlock

import (
	"runtime"
	"slices"
	"weak"

	"holdfast/internal/owner"
)

// A level is dropped if no caller can release it: its hold is unreachable, and so is each context
// that carries its owner, with which Lock.Unlock could. Renewing it would keep others out for ever.
//
// Only callers keep a Hold and its context alive: the client has the level. Until the first renewal
// it has the Hold as well, so that a lock that is held for a moment costs nothing.

// watch begins to watch the levels whose holds the client still has.
func (a *acquisition) watch() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.levels {
		if h := l.hold; h != nil {
			l.hold = nil
			runtime.AddCleanup(h, unreachable.found, unreachable{l, carriers(h)})
		}
	}
}

// unreachable is a level whose hold is unreachable, with what may still carry its owner.
type unreachable struct {
	level    *level
	carriers []weak.Pointer[owner.Carrier]
}

// carriers returns what carried the owner of a hold when it was acquired.
func carriers(h *Hold) (all []weak.Pointer[owner.Carrier]) {
	for c := owner.Of(h.parent); c != nil && c.Token == h.level.owner; c = c.Outer {
		all = append(all, weak.Make(c))
	}
	return all
}

// found is called when the hold, or one more carrier, has become unreachable.
func (u unreachable) found() {
	for _, each := range u.carriers {
		if c := each.Value(); c != nil {
			runtime.AddCleanup(c, unreachable.found, u)
			return
		}
	}
	u.level.acquisition.(*acquisition).drop(u.level)
}

// drop stops the renewal for a level that was dropped, and logs that, unless its release has begun.
func (a *acquisition) drop(l *level) {
	a.mu.Lock()
	dropped := a.state == active && slices.Contains(a.levels, l) && l.renew && !l.unlocked.Load()
	if dropped {
		l.renew = false
		a.renewForLevels()
	}
	a.mu.Unlock()
	if dropped {
		a.client.warn("holdfast: a hold was dropped without Unlock, so that nobody can release "+
			"its lock: it is not renewed any more, and free when its lease ends; "+
			l.site.acquiredAt(), "lock", a.lock.name, "owner", a.owner)
	}
}

// renewForLevels makes the watchdog renew if a level asks for it. It is called with mu held: a
// level that is added afterwards may renew.
func (a *acquisition) renewForLevels() {
	renew := slices.ContainsFunc(a.levels, func(l *level) bool { return l.renew })
	a.client.watchdog.SetRenew(&a.lease, renew)
}
