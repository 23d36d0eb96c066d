package rlock

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"weak"

	"holdfast/internal/owner"
)

// overlapping returns a level that was acquired after l and is not being released, unless the
// acquisition has ended. It is called with mu held and a level or more.
//
// Nested sections end in the opposite order of their beginning. If l ends first, two callers were
// inside at once: goroutines that share an owner, which do not exclude each other.
func (a *acquisition) overlapping(l *level) *level {
	n := len(a.levels)
	if a.state != active || a.levels[n-1] == l || a.lock.mode == sharedMode {
		return nil
	}
	if last := a.levels[n-1]; !last.unlocked.Load() {
		return last
	}
	return nil
}

// reportOverlap logs, once per client, that two levels of an owner overlapped without being nested.
func (a *acquisition) reportOverlap(l, other *level) {
	c := a.client
	if !c.overlapped.CompareAndSwap(false, true) {
		return
	}
	c.warn("holdfast: two goroutines with the same owner held a lock at the same time, so it did not "+
		"exclude them; start each goroutine with rlock.Detached(ctx), or without rlock.WithOwner",
		"lock", a.lock.name, "owner", a.owner,
		"first", l.site.acquiredAt(), "second", other.site.acquiredAt())
}

// age says how much of Options.MaxHold an acquisition has used. It only grows.
type age uint8

const (
	young   age = iota
	halfway     // half of it, which was logged
	spent       // all of it, or what is left is less than a lease: it is not renewed any more
)

// MayRenew reports whether the watchdog may renew the acquisition once more: with a lease from now
// it does not last longer than Options.MaxHold. It warns when half of that is over.
func (a *acquisition) MayRenew() bool {
	most := a.client.options.MaxHold
	if most == 0 {
		return true
	}
	held := time.Since(*a.began)
	a.mu.Lock()
	before := a.age
	switch {
	case held > most-a.client.options.WatchdogLease:
		a.age = spent
		a.unrenewed = fmt.Errorf("held for Options.MaxHold, %v, so the watchdog no longer renews; "+
			"shorten the work, or raise MaxHold", most)
	case held >= most/2:
		a.age = halfway
	}
	warn, spent := before == young && a.age != young && len(a.levels) > 0, a.age == spent
	var site callSite
	if warn {
		site = a.levels[0].site
	}
	a.mu.Unlock()
	if warn {
		a.client.warn("holdfast: lock has been held for half of Options.MaxHold, and will be lost "+
			"when MaxHold ends; shorten the work, or raise MaxHold", "lock", a.lock.name, "owner", a.owner,
			"held", held.Round(time.Millisecond), "max", most, "stack", site.stack())
	}
	return !spent
}

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
	hold          weak.Pointer[Hold]
	ownerContexts []weak.Pointer[owner.Context] // of its owner, when it was acquired
	outer         *reachable                    // has the other owner contexts; nil if there are none
}

// watch makes what the client knows of a hold weak.
func watch(h *Hold) *reachable {
	r := &reachable{hold: weak.Make(h)}
	for c := h.ownerContext; c != nil && c.Token == h.level.owner && r.outer == nil; c = c.Outer {
		r.ownerContexts = append(r.ownerContexts, weak.Make(c))
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
		if slices.ContainsFunc(r.ownerContexts,
			func(c weak.Pointer[owner.Context]) bool { return c.Value() != nil }) {
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
		if l.renew && l.whole.Load() == nil {
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
			c.warn("holdfast: hold was garbage-collected without Unlock, and the watchdog renews its lock "+
				"until the client is closed; release each hold, wait for Hold.Done to keep a lock "+
				"forever, or set Options.MaxHold; "+l.site.acquiredAt(),
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

// callSite is where a caller acquired a lock: its stack, innermost frame first.
type callSite []uintptr

// deepest is the number of frames that a call site has at most.
const deepest = 32

// here returns the call site of the caller; nil unless an option asks for it.
func (c *Client) here() callSite {
	if !c.options.Debug && c.options.MaxHold == 0 {
		return nil
	}
	frames := make([]uintptr, deepest)
	return frames[:runtime.Callers(2, frames)]
}

// goroutine returns the number of this goroutine, for warnings only; 0 without Options.Debug.
func (c *Client) goroutine() uint64 {
	if !c.options.Debug {
		return 0
	}
	var stack [64]byte
	number, _ := strings.CutPrefix(string(stack[:runtime.Stack(stack[:], false)]), "goroutine ")
	number, _, _ = strings.Cut(number, " ")
	id, _ := strconv.ParseUint(number, 10, 64)
	return id
}

// module is the prefix of the functions of this module.
var module = strings.TrimSuffix(reflect.TypeFor[Client]().PkgPath(), "rlock")

// ours reports whether a function is of a package that acquires locks for callers.
func ours(function string) bool {
	name, ok := strings.CutPrefix(function, module)
	return ok && (strings.HasPrefix(name, "rlock.") || strings.HasPrefix(name, "multilock.") ||
		strings.HasPrefix(name, "redlock."))
}

// frames calls f with each frame of the caller's code, until it returns false.
func (cs callSite) frames(f func(runtime.Frame) bool) {
	if len(cs) == 0 {
		return
	}
	for frames := runtime.CallersFrames(cs); ; {
		frame, more := frames.Next()
		if !ours(frame.Function) && frame.File != "" && !f(frame) || !more {
			return
		}
	}
}

// String returns the file and line of the call; "" if the call site was not recorded.
func (cs callSite) String() (at string) {
	cs.frames(func(f runtime.Frame) bool {
		at = fmt.Sprintf("%s:%d", f.File, f.Line)
		return false
	})
	return at
}

// stack returns all frames of the caller's code, one on each line.
func (cs callSite) stack() string {
	var lines strings.Builder
	cs.frames(func(f runtime.Frame) bool {
		fmt.Fprintf(&lines, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		return true
	})
	return lines.String()
}

// acquiredAt returns "acquired at " and the call site, or how to have it recorded.
func (cs callSite) acquiredAt() string {
	if at := cs.String(); at != "" {
		return "acquired at " + at
	}
	return "set Options.Debug to record where"
}
