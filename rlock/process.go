package rlock

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/watchdog"
)

// clients has the clients of this process that are not closed, by id.
var clients sync.Map // of string to *Client

// clientOf returns the client with an acquisition of that name in Redis; nil if it is of another
// process.
func clientOf(owner string) *Client {
	id, _, _ := strings.Cut(owner, ":")
	c, _ := clients.Load(id)
	found, _ := c.(*Client)
	return found
}

// acquisition returns the acquisition with a name in Redis, of a writer that reads its write lock;
// nil if it is not of this client. It looks at everything that the client holds.
func (c *Client) acquisition(owner string) (found *acquisition) {
	c.watchdog.Find(func(l *watchdog.Lease) bool {
		a := l.Value.(*acquisition)
		if a.owner == owner {
			found = a
		}
		return found != nil && found.lock.mode == exclusiveMode
	})
	return found
}

// site returns where the outermost level was acquired.
func (a *acquisition) site() callSite {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.levels) == 0 {
		return nil
	}
	return a.levels[0].site
}

// rate limits how often something is logged.
type rate struct{ last atomic.Pointer[time.Time] }

// allows reports whether it may be logged now: at most once in each period.
func (r *rate) allows(period time.Duration) bool {
	now, last := time.Now(), r.last.Load()
	return (last == nil || now.Sub(*last) >= period) && r.last.CompareAndSwap(last, &now)
}

// noticeOwnHolder is called when the holder is known. It logs, once, that the same holder of this
// process has kept the caller waiting for longer than a watchdog's lease: it may be the caller
// itself, in an outer section.
func (at *attempt) noticeOwnHolder() {
	if at.holder.Owner != at.blocker {
		at.blocker, at.blocked = at.holder.Owner, time.Now()
		at.noticeItself()
		return
	}
	c := at.client
	lease := c.options.WatchdogLease
	if at.holder.Next || at.blocked.IsZero() || time.Since(at.blocked) < lease {
		return
	}
	at.blocked = time.Time{} // once
	e := at.heldError()
	if e.SameProcess && c.ownWaits.allows(lease) {
		c.warn("holdfast: a lock has been waited for longer than Options.WatchdogLease: "+
			e.holder()+e.advice(), "lock", at.lock.name, "owner", e.Owner)
	}
}

// noticeItself logs, with Options.Debug, that the goroutine of the attempt holds the lock itself.
// Its context did not show that, or it would have got [ErrDeadlock] or the lock.
func (at *attempt) noticeItself() {
	c := at.client
	id, holder := c.goroutine(), clientOf(at.holder.Owner)
	if id == 0 || holder == nil || at.holder.Next {
		return
	}
	if a := holder.acquisition(at.holder.Owner); a != nil && a.isOf(id) {
		e := at.heldError()
		c.warn("holdfast: a goroutine waits for a lock that it holds itself: "+
			e.holder()+e.advice(), "lock", at.lock.name, "owner", e.Owner, "waits at", c.here().String())
	}
}

// isOf reports whether a goroutine acquired a level.
func (a *acquisition) isOf(goroutine uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.levels, func(l *level) bool { return l.goroutine == goroutine })
}
