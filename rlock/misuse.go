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
// acquisition has ended. The caller holds mu, and the acquisition has a level or more.
//
// Nested holds end in the opposite order of their beginning. If l ends first, two callers held the
// lock at once. These are goroutines with the same owner, which do not exclude each other.
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

// reportOverlap logs, once per client, that two levels of an owner overlapped and were not nested.
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

// age says how much of Options.MaxHold an acquisition has used. An age only grows.
type age uint8

const (
	young   age = iota
	halfway     // half of MaxHold is over, and was logged
	spent       // less than a lease is left of MaxHold, so the watchdog no longer renews
)

// MayRenew reports whether the watchdog may renew the acquisition once more. With a lease from now,
// the acquisition must not last longer than Options.MaxHold. MayRenew logs a warning when half of
// MaxHold is over.
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

// A hold is dropped if no caller can release it. The hold is then unreachable, and so is each
// context with its owner, because such a context would do for Lock.Unlock. The client reports the
// drop once, and continues to renew the lock. A caller may be blocked on the channel of the context
// of the hold. That channel keeps nothing reachable, and the caller must not lose its lock.
// Options.MaxHold limits the renewals.
//
// Only callers keep a Hold and its context alive. The client has the level. Until the first renewal
// the client also has the Hold, so that a lock with a short hold costs nothing. From then on, each
// renewal checks whether the garbage collector has found the hold unreachable.

// reachable is how callers can reach a level.
type reachable struct {
	hold          weak.Pointer[Hold]
	ownerContexts []weak.Pointer[owner.Context] // of the owner, when the level was acquired
	outer         *reachable                    // has the other owner contexts; nil without others
}

// watch returns weak pointers to a hold and to the owner contexts.
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

// watched returns how callers can reach the level, or nil if the level is not watched.
func (l *level) watched() *reachable {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reachable
}

// owned reports whether callers can reach a context with the owner, even without the hold.
func (r *reachable) owned() bool {
	for ; r != nil; r = r.outer {
		if slices.ContainsFunc(r.ownerContexts,
			func(c weak.Pointer[owner.Context]) bool { return c.Value() != nil }) {
			return true
		}
	}
	return false
}

// reportDropped runs at each renewal. It logs a warning if the outermost level with the watchdog
// was dropped.
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

// reportDropped logs a warning, once, if the outermost of some levels was dropped. The first call
// for a level begins to watch the level. The other levels are inside the outermost level. The
// client watches them only because their contexts may keep the outermost level reachable.
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

// isUnreachable reports whether no caller has the hold or its context. For an unreachable level,
// isUnreachable severs the context of the hold from the context of the caller.
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

// foundDropped reports, once, whether an unreachable level was dropped, because nobody has its
// owner. If somebody called Hold.Done, the level is meant to be held forever.
func (l *level) foundDropped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reachable == nil || l.done != nil || l.reachable.owned() {
		return false
	}
	l.reachable = nil
	return true
}

// severable is the context of the caller inside the context of a hold. The level keeps both
// contexts, because it ends the context of the hold. But the context of the caller may carry the
// owner, so the level gives that context up once the hold is unreachable. Nobody can then use the
// context of the hold, except through its channel. The end of the caller's context still ends its
// child, the context of the hold.
type severable struct {
	mu      sync.Mutex
	context context.Context // guarded by mu; nil once severed
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

// severed stands for a severed context. It has ended, because only code of package context still
// asks, after it has seen the end of the caller's context.
var severed = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// These methods implement [context.Context].

func (s *severable) Deadline() (time.Time, bool) { return s.get().Deadline() }
func (s *severable) Done() <-chan struct{}       { return s.get().Done() }
func (s *severable) Err() error                  { return s.get().Err() }
func (s *severable) Value(key any) any           { return s.get().Value(key) }

// callSite is the stack of a caller that acquired a lock, innermost frame first.
type callSite []uintptr

// deepest is the largest number of frames of a call site.
const deepest = 32

// here returns the call site of the caller, or nil unless an option asks for call sites.
func (c *Client) here() callSite {
	if !c.options.Debug && c.options.MaxHold == 0 {
		return nil
	}
	frames := make([]uintptr, deepest)
	return frames[:runtime.Callers(2, frames)]
}

// goroutine returns the number of this goroutine, or 0 without Options.Debug. Use the number only
// for warnings.
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

// module is the prefix of all functions of this module.
var module = strings.TrimSuffix(reflect.TypeFor[Client]().PkgPath(), "rlock")

// ours reports whether a function is in a package that acquires locks for callers.
func ours(function string) bool {
	name, ok := strings.CutPrefix(function, module)
	return ok && (strings.HasPrefix(name, "rlock.") || strings.HasPrefix(name, "multilock.") ||
		strings.HasPrefix(name, "redlock."))
}

// frames calls f with each frame of the caller's code, until f returns false.
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

// String returns the file and line of the call, or "" if the call site was not recorded.
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

// acquiredAt returns "acquired at " and the call site, or how to record call sites.
func (cs callSite) acquiredAt() string {
	if at := cs.String(); at != "" {
		return "acquired at " + at
	}
	return "set Options.Debug to record where"
}
