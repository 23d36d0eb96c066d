package rlock

import (
	"context"
	"slices"
	"sync"
	"time"
	"weak"

	"holdfast/internal/owner"
)

// A hold is dropped if no caller can release it: the hold is unreachable, and so is each context
// that carries its owner, with which Lock.Unlock could. That is reported once, and the lock goes on
// being renewed: a caller may be blocked on the channel of the hold's context, which keeps nothing
// reachable, and must not lose the lock that it works under. Options.MaxHold bounds it.
//
// Only callers keep a Hold and its context alive: the client has the level. Until the first renewal
// it has the Hold as well, so that a lock that is held for a moment costs nothing. From then on
// each renewal asks whether the garbage collector has found it unreachable.

// reachable is how callers can reach a level.
type reachable struct {
	hold     weak.Pointer[Hold]
	carriers []weak.Pointer[owner.Carrier] // of its owner, when it was acquired
	outer    *reachable                    // has the other carriers; nil if there are none
}

// watch makes what the client knows of a hold weak.
func watch(h *Hold) *reachable {
	r := &reachable{hold: weak.Make(h)}
	for c := h.carrier; c != nil && c.Token == h.level.owner && r.outer == nil; c = c.Outer {
		r.carriers = append(r.carriers, weak.Make(c))
		if outer, ok := c.Hold.(*Hold); ok {
			r.outer = outer.level.watched() // or thousands of levels would keep millions of pointers
		}
	}
	return r
}

// watched returns how the level can be reached, if it is watched.
func (l *level) watched() *reachable {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reachable
}

// owned reports whether callers can reach a context with the owner, without the hold.
func (r *reachable) owned() bool {
	for ; r != nil; r = r.outer {
		if slices.ContainsFunc(r.carriers,
			func(c weak.Pointer[owner.Carrier]) bool { return c.Value() != nil }) {
			return true
		}
	}
	return false
}

// reportDropped is called at each renewal. It logs if the outermost level that asks for the
// watchdog was dropped.
func (a *acquisition) reportDropped() {
	var few [4]*level
	renewed := few[:0]
	a.mu.Lock()
	if len(a.levels) > len(few) {
		renewed = make([]*level, 0, len(a.levels))
	}
	for _, l := range a.levels {
		if l.renew {
			renewed = append(renewed, l)
		}
	}
	a.mu.Unlock()
	reportDropped(a.client, renewed)
}

// reportDropped logs, once, if the outermost of some levels was dropped. The first call for a level
// begins to watch it. The other levels are inside the outermost one: they are watched only because
// their contexts may keep it reachable.
func reportDropped(c *Client, levels []*level) {
	for i, l := range levels {
		if l.isUnreachable() && i == 0 && l.foundDropped() {
			c.warn("holdfast: a hold was dropped without Unlock, and the watchdog renews its lock until "+
				"the client is closed; release each hold, wait for Hold.Done to keep a lock for ever, or "+
				"set Options.MaxHold; "+l.site.acquiredAt(),
				"lock", l.acquisition.Name(), "owner", l.acquisition.Owner())
		}
	}
}

// isUnreachable reports whether no caller has the hold or its context. Then it severs the context
// from that of the caller.
func (l *level) isUnreachable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold != nil {
		l.reachable, l.hold = watch(l.hold), nil
	}
	if l.reachable == nil || l.reachable.hold.Value() != nil {
		return false
	}
	if l.caller != nil {
		l.caller.sever()
	}
	return true
}

// foundDropped reports, once, whether an unreachable level was dropped: nobody has its owner. One
// whose end somebody has asked for, by Hold.Done, is meant to be held for ever.
func (l *level) foundDropped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reachable == nil || l.done != nil || l.reachable.owned() {
		return false
	}
	l.reachable = nil
	return true
}

// severable is the caller's context inside the context of a hold. The level keeps both, to end the
// latter, and the caller's may carry the owner. So it is given up once the hold is unreachable:
// nobody can use the hold's context then, except by its channel. The end of the caller's context
// still ends it, because that has the hold's as a child.
type severable struct {
	mu      sync.Mutex
	context context.Context // guarded by mu; nil once it is severed
}

func (s *severable) sever() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.context = nil
}

func (s *severable) get() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.context == nil {
		return severed
	}
	return s.context
}

// severed is what is left of a context: it has ended, because only code of package context that has
// seen its end still asks.
var severed = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// These implement [context.Context].

func (s *severable) Deadline() (time.Time, bool) { return s.get().Deadline() }
func (s *severable) Done() <-chan struct{}       { return s.get().Done() }
func (s *severable) Err() error                  { return s.get().Err() }
func (s *severable) Value(key any) any           { return s.get().Value(key) }
