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

// ErrDeadlock reports that waiting would never end: callers of this process wait for each other in
// a circle, or this one waits for itself. The error names the locks and, with Options.Debug, where
// they were acquired. It also matches [ErrNotAcquired]; test for ErrDeadlock first, because waiting
// does not help: acquire the locks in one order everywhere, or together (package multilock).
//
// A circle is found when its last caller begins to wait, unless the wait of another one ends before
// that by its limit or its context's deadline. A caller counts as holding what the contexts that it
// passed down belong to, and what was acquired with the same context of [WithOwner]. Whether
// another goroutine is about to release that is not known: start goroutines that nobody waits for
// with [Detached]. RedLocks and waits in other processes are not looked at.
var ErrDeadlock = errors.New("deadlock")

var errDeadlock = fmt.Errorf("%w: %w", ErrNotAcquired, ErrDeadlock)

// blockedCall is a call that holds a lock and waits for another.
type blockedCall struct {
	lock    *Lock          // that it waits for
	carrier *owner.Carrier // in its context
	site    callSite
	until   time.Time // when its wait ends by itself; zero if never
}

// outlasts reports whether the call may still wait when the wait of another has ended by itself.
func (b *blockedCall) outlasts(other *blockedCall) bool {
	return b.until.IsZero() || !other.until.IsZero() && !b.until.Before(other.until)
}

// blockedCalls has those of this process.
var blockedCalls struct {
	mu  sync.Mutex
	all []*blockedCall // guarded by mu
}

// block notes that the attempt begins to wait in a queue, and returns ErrDeadlock if that closes a
// circle. Otherwise the caller calls unblock. A call that holds nothing is not noted.
func (at *attempt) block(q *lockQueue) error {
	q.Do(func(kn *known) { at.holder = kn.lastHolder() })
	at.noticeOwnHolder()
	c := owner.Of(at.budget.Ctx)
	if !holdsAny(c) {
		return nil
	}
	at.client.meet(clientOf(at.holder.Owner))
	b := &blockedCall{at.lock, c, at.client.here(), at.budget.Until}
	blockedCalls.mu.Lock()
	defer blockedCalls.mu.Unlock()
	all := append(slices.Clone(blockedCalls.all), b)
	if circle := b.circle(b, all, make(map[*blockedCall]bool)); circle != nil {
		return fmt.Errorf("%w: %s", errDeadlock, strings.Join(circle, ", and "))
	}
	blockedCalls.all = append(blockedCalls.all, b)
	at.blockedCall = b
	return nil
}

// unblock notes that the attempt waits no longer.
func (at *attempt) unblock() {
	if at.blockedCall == nil {
		return
	}
	blockedCalls.mu.Lock()
	defer blockedCalls.mu.Unlock()
	blockedCalls.all = slices.DeleteFunc(blockedCalls.all,
		func(b *blockedCall) bool { return b == at.blockedCall })
}

// holdsAny reports whether a caller with that carrier may hold a lock.
func holdsAny(c *owner.Carrier) bool {
	for ; c != nil; c = c.Outer {
		if h, _ := c.Hold.(*Hold); h != nil && h.Err() == nil || c.Root != nil && c.Root.Load() > 0 {
			return true
		}
	}
	return false
}

// circle returns the steps from b to a call that waits for it in the end; nil if there are none.
// seen has the calls from which there are none.
func (b *blockedCall) circle(to *blockedCall, all []*blockedCall, seen map[*blockedCall]bool,
) []string {
	seen[b] = true
	for _, other := range all {
		a := other.holds(b)
		if a == nil || other != to && (seen[other] || !other.outlasts(to)) {
			continue
		}
		step := b.describe(a, other == b)
		if other == to {
			return []string{step}
		}
		if rest := other.circle(to, all, seen); rest != nil {
			return append([]string{step}, rest...)
		}
	}
	return nil
}

// describe returns a text about what the call waits for, which is a.
func (b *blockedCall) describe(a *acquisition, itself bool) string {
	whose := "a caller that waits in turn"
	if itself {
		whose = "this very caller (pass its hold.Context() down)"
	}
	text := fmt.Sprintf("lock %q is held by %s", b.lock.name, whose)
	if kind := a.lock.kindName(); kind != b.lock.kindName() {
		text += fmt.Sprintf(" as a %s lock", kind)
	}
	if at := a.site().String(); at != "" {
		text += ", acquired at " + at
	}
	if at := b.site.String(); at != "" {
		text += ", waited for at " + at
	}
	return text
}

// holds returns what the call holds that another waits for; nil if it holds no such thing.
func (b *blockedCall) holds(other *blockedCall) *acquisition {
	for c := b.carrier; c != nil; c = c.Outer {
		if h, _ := c.Hold.(*Hold); h != nil {
			if a, _ := h.level.acquisition.(*acquisition); a != nil && a.blocks(other) {
				return a
			}
		} else if a := acquiredWith(c, other); a != nil {
			return a
		}
	}
	return nil
}

// blocks reports whether the acquisition keeps a call out of the lock that it waits for.
func (a *acquisition) blocks(b *blockedCall) bool {
	l := b.lock
	shared := a.lock.mode == sharedMode && l.mode == sharedMode
	reenters := a.token == b.carrier.Token && a.lock.family == l.family && a.client == l.client
	return a.lock.name == l.name && !shared && !reenters && a.client.sameRedis(l.client) && a.lasts()
}

// lasts reports whether the acquisition has a level and was not lost.
func (a *acquisition) lasts() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state == active && len(a.levels) > 0
}

// meet notes that another client is on the same Redis: it holds a lock that c was refused. An
// address would not tell, because a server may have several databases.
func (c *Client) meet(other *Client) {
	if other != nil && other != c && !c.sameRedis(other) {
		c.peers.Store(other.id, nil)
		other.peers.Store(c.id, nil)
	}
}

// sameRedis reports whether locks of both clients are known to be on the same Redis.
func (c *Client) sameRedis(other *Client) bool {
	if c == other {
		return true
	}
	_, met := c.peers.Load(other.id)
	return met
}

// acquiredWith returns what was acquired with a carrier directly and blocks a call; nil if there is
// no such thing.
func acquiredWith(c *owner.Carrier, b *blockedCall) (found *acquisition) {
	if c.Root == nil || c.Root.Load() == 0 {
		return nil
	}
	clients.Range(func(_, each any) bool {
		found = each.(*Client).acquiredWith(c, b)
		return found == nil
	})
	return found
}

// acquiredWith is the same for what was acquired through the client.
func (c *Client) acquiredWith(carrier *owner.Carrier, b *blockedCall) *acquisition {
	for _, family := range families {
		s := c.sessions.Find(sessionKey{family, b.lock.name, carrier.Token})
		if s == nil {
			continue
		}
		for m := range modes {
			if a := held(s, m); a != nil && a.blocks(b) && a.rootedIn(carrier) {
				return a
			}
		}
	}
	return nil
}

// rootedIn reports whether a level was acquired with a carrier directly.
func (a *acquisition) rootedIn(c *owner.Carrier) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.levels, func(l *level) bool { return l.root == c.Root })
}
