package rlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/internal/owner"
)

// ErrDeadlock reports that waiting does not help, because callers of this process wait for each
// other in a cycle, or because the caller waits for itself. The error names the locks and, with
// Options.Debug, the lines that acquired them. The error also matches [ErrNotAcquired], so check
// for ErrDeadlock first, and do not try again. Acquire the locks in the same order everywhere, or
// together with package multilock.
//
// The caller that closes a cycle gets the error at once, even if its wait has a limit. If another
// wait of the cycle ends within a second and before the wait of the caller, the caller waits
// instead, because the other caller gives up first. The client logs a cycle at most once per
// Options.WatchdogLease. The client does not log a cycle with a wait of a second or less, because
// such a caller probably gives up and tries again.
//
// A caller counts as the holder of each lock if it passed down the context of the hold, and of each
// lock acquired with the same context of [WithOwner] before the caller began to wait. The client
// does not know whether another goroutine is about to release such a lock, so use [Detached] for
// goroutines that nobody waits for. The client does not find cycles with RedLocks, with other
// processes, or of more than a thousand callers.
var ErrDeadlock = errors.New("deadlock")

var errDeadlock = fmt.Errorf("%w: %w", ErrNotAcquired, ErrDeadlock)

const (
	// soon is the longest time that a caller of a cycle waits for another wait of the cycle to end.
	soon = time.Second
	// mostVisited bounds the calls that a search visits, because others wait for the mutex meanwhile.
	mostVisited = 1000
)

// blockedCall is a call that holds locks and waits for another lock.
type blockedCall struct {
	lock         *Lock          // the lock that the call waits for
	ownerContext *owner.Context // in the context of the call
	held         []*acquisition // what the call held when it began to wait
	site         callSite
	until        time.Time // when the wait ends by itself; zero if never
	short        bool      // until was soon when the wait began
}

// endsBefore reports whether the wait ends soon, and not after the wait of another call.
func (b *blockedCall) endsBefore(other *blockedCall) bool {
	return !b.until.IsZero() && time.Until(b.until) <= soon &&
		(other.until.IsZero() || !b.until.After(other.until))
}

// blockedCalls has the blocked calls of this process. Many calls may wait for a lock, but few calls
// both hold the lock and are blocked. So a search follows the locks, begins with the lock that a
// call waits for, and finds the holders by the name of the lock.
var blockedCalls struct {
	mu      sync.Mutex
	holding map[string]map[*blockedCall]bool // by the names of the held locks; guarded by mu
	visited int                              // by all searches; guarded by mu
}

// block notes that the attempt begins to wait in a queue. If that closes a cycle in which no other
// wait ends soon, block returns ErrDeadlock. Otherwise the caller calls unblock. block does not
// note a call that holds nothing.
func (at *attempt) block(q *lockQueue) error {
	q.Do(func(kn *known) { at.holder = kn.lastHolder() })
	at.noticeOwnHolder()
	c, until := at.client, at.budget.Until
	_, ownerContext := owner.From(at.budget.Ctx)
	held := heldWith(ownerContext)
	if len(held) == 0 {
		return nil
	}
	c.meet(clientOf(at.holder.Owner))
	b := &blockedCall{lock: at.lock, ownerContext: ownerContext, held: held, site: c.here(),
		until: until, short: !until.IsZero() && time.Until(until) <= soon}
	cycle, fails := b.begin()
	if len(cycle) > 1 && !slices.ContainsFunc(cycle, func(s step) bool { return s.call.short }) &&
		c.cycles.allows(c.options.WatchdogLease) {
		c.warn("holdfast: callers of this process wait for each other in a cycle: "+describe(cycle)+
			"; acquire these locks in one order everywhere, or together with package multilock",
			"lock", at.lock.name, "rejected", fails)
	}
	if fails {
		return fmt.Errorf("%w: %s", errDeadlock, describe(cycle))
	}
	at.blockedCall = b
	return nil
}

// begin adds the call, unless the call closes a cycle in which no other wait ends soon. Then the
// call fails, and begin returns that cycle. Otherwise begin returns any other cycle, or nil.
func (b *blockedCall) begin() (cycle []step, fails bool) {
	blockedCalls.mu.Lock()
	defer blockedCalls.mu.Unlock()
	lasting := search{from: b, seen: make(map[*blockedCall]bool),
		skips: func(other *blockedCall) bool { return other.endsBefore(b) }}
	cycle = lasting.path(b)
	if cycle != nil {
		return cycle, true
	}
	if lasting.skipped {
		whole := search{from: b, seen: make(map[*blockedCall]bool)}
		cycle = whole.path(b)
	}
	if blockedCalls.holding == nil {
		blockedCalls.holding = make(map[string]map[*blockedCall]bool)
	}
	for _, a := range b.held {
		calls := blockedCalls.holding[a.lock.name]
		if calls == nil {
			calls = make(map[*blockedCall]bool)
			blockedCalls.holding[a.lock.name] = calls
		}
		calls[b] = true
	}
	return cycle, false
}

// unblock notes that the attempt no longer waits.
func (at *attempt) unblock() {
	b := at.blockedCall
	if b == nil {
		return
	}
	blockedCalls.mu.Lock()
	defer blockedCalls.mu.Unlock()
	for _, a := range b.held {
		calls := blockedCalls.holding[a.lock.name]
		if delete(calls, b); len(calls) == 0 {
			delete(blockedCalls.holding, a.lock.name)
		}
	}
}

// heldWith returns what a caller with the owner context holds.
func heldWith(c *owner.Context) (held []*acquisition) {
	add := func(acquired Acquisition) {
		a, _ := acquired.(*acquisition)
		if a != nil && (len(held) == 0 || held[len(held)-1] != a) { // else it is one of its levels
			held = append(held, a)
		}
	}
	for ; c != nil; c = c.Outer {
		if h, _ := c.Hold.(*Hold); h != nil && h.Err() == nil {
			add(h.level.acquisition)
		}
		if c.Root != nil {
			for _, l := range c.Root.Held() {
				add(l.(*level).acquisition)
			}
		}
	}
	return held
}

// step is a call of a cycle, and the acquisition that the call waits for. The next call holds that
// acquisition.
type step struct {
	call *blockedCall
	held *acquisition
}

// search looks for a cycle that a call closes. The caller holds blockedCalls.mu.
type search struct {
	from    *blockedCall
	skips   func(*blockedCall) bool // calls that a cycle may not contain; nil without such calls
	seen    map[*blockedCall]bool   // visited calls; none has a way to from
	visited int
	skipped bool
}

// path returns the steps from b to the call that began the search, or nil if no path leads there.
func (s *search) path(b *blockedCall) []step {
	if a := s.from.holds(b); a != nil {
		return []step{{b, a}}
	}
	for other := range blockedCalls.holding[b.lock.name] {
		if s.visited == mostVisited {
			return nil
		}
		s.visited++
		blockedCalls.visited++
		a := other.holds(b)
		if a == nil || s.seen[other] {
			continue
		}
		s.seen[other] = true
		if s.skips != nil && s.skips(other) {
			s.skipped = true
		} else if rest := s.path(other); rest != nil {
			return append([]step{{b, a}}, rest...)
		}
	}
	return nil
}

// holds returns the acquisition of the call for which another call waits, or nil.
func (b *blockedCall) holds(other *blockedCall) *acquisition {
	for _, a := range b.held {
		if a.blocks(other) {
			return a
		}
	}
	return nil
}

// describe returns a text about a cycle.
func describe(cycle []step) string {
	texts := make([]string, len(cycle))
	for i, s := range cycle {
		texts[i] = s.describe(len(cycle) == 1)
	}
	return strings.Join(texts, ", and ")
}

// describe returns a text about the lock that a call waits for. itself says that the call holds
// that lock itself.
func (s step) describe(itself bool) string {
	b, a := s.call, s.held
	kind, wanted := a.lock.kindName(), b.lock.kindName()
	whose, advice := "another caller of the cycle", ""
	switch {
	case itself && a.token != b.ownerContext.Token:
		whose, advice = "the caller itself", "; pass the context of that hold down"
	case itself && a.client != b.lock.client:
		whose, advice = "the caller itself", "; use one client for one lock"
	case itself: // its context was passed down, but does not help with a lock of another kind
		whose, advice = "the caller itself", "; use one kind of lock for one name"
	}
	text := fmt.Sprintf("lock %q is held by %s", b.lock.name, whose)
	if kind != wanted {
		text += fmt.Sprintf(" as a %s lock, not a %s one", kind, wanted)
	}
	if itself && a.client != b.lock.client {
		text += " through another client"
	}
	if at := a.site().String(); at != "" {
		text += ", acquired at " + at
	}
	if at := b.site.String(); at != "" {
		text += ", waited for at " + at
	}
	return text + advice
}

// blocks reports whether the acquisition keeps a call out of the lock that the call waits for.
func (a *acquisition) blocks(b *blockedCall) bool {
	l := b.lock
	shared := a.lock.mode == sharedMode && l.mode == sharedMode
	reenters := a.token == b.ownerContext.Token && a.lock.family == l.family && a.client == l.client
	return a.lock.name == l.name && !shared && !reenters && a.client.sameRedis(l.client) && a.lasts()
}

// lasts reports whether the acquisition has a level and was not lost.
func (a *acquisition) lasts() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state == active && len(a.levels) > 0
}

// meet notes that another client is on the same Redis, because that client holds a lock for which c
// waits. An address does not show that, because a server may have several databases.
func (c *Client) meet(other *Client) {
	if other == nil || other == c || c.sameRedis(other) {
		return
	}
	c.peers.Store(other.id, nil)
	other.peers.Store(c.id, nil)
	for _, each := range []*Client{c, other} {
		if each.isClosing() { // the client may have parted already
			each.part()
		}
	}
}

// part makes the other clients of this process forget a closed client.
func (c *Client) part() {
	c.peers.Range(func(id, _ any) bool {
		if other, _ := clients.Load(id); other != nil {
			other.(*Client).peers.Delete(c.id)
		}
		c.peers.Delete(id)
		return true
	})
}

// sameRedis reports whether locks of both clients are known to be on the same Redis.
func (c *Client) sameRedis(other *Client) bool {
	if c == other {
		return true
	}
	_, met := c.peers.Load(other.id)
	return met
}
