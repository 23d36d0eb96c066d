package rlock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/owner"
	"holdfast/internal/printable"
)

// clients has the open clients of this process, by id.
var clients sync.Map // of string to *Client

// clientOf returns the client with an acquisition of that name in Redis, or nil for a name of
// another process.
func clientOf(name string) *Client {
	id, _, _ := strings.Cut(name, ":")
	c, _ := clients.Load(id)
	found, _ := c.(*Client)
	return found
}

// acquisitionsByOwner finds the acquisitions of a client by their names in Redis. It has its own
// mutex, because all renewals and releases need the mutex of the watchdog.
type acquisitionsByOwner struct {
	mu  sync.Mutex
	all map[string][modes]*acquisition // guarded by mu; a writer that reads has one name for both
}

// acquisition returns the acquisition with a name in Redis, or nil for a name of another client.
// For a writer that reads, acquisition returns the write lock.
func (c *Client) acquisition(name string) *acquisition {
	ao := &c.owners
	ao.mu.Lock()
	defer ao.mu.Unlock()
	found := ao.all[name]
	return cmp.Or(found[exclusiveMode], found[sharedMode])
}

// unwatch makes the watchdog stop watching the acquisition, and removes its name. unwatch reports
// whether the watchdog had the acquisition until now. A second call does nothing, even if a newer
// acquisition has the name.
func (a *acquisition) unwatch() (watched bool) {
	watched = a.client.watchdog.Remove(&a.watched)
	ao := &a.client.owners
	ao.mu.Lock()
	defer ao.mu.Unlock()
	found := ao.all[a.owner]
	if found[a.lock.mode] != a {
		return watched
	}
	found[a.lock.mode] = nil
	if found == [modes]*acquisition{} {
		delete(ao.all, a.owner)
	} else {
		ao.all[a.owner] = found
	}
	return watched
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

// rate limits how often a warning is logged.
type rate struct{ last atomic.Pointer[time.Time] }

// allows reports whether the warning may be logged now, at most once in each period.
func (r *rate) allows(period time.Duration) bool {
	now, last := time.Now(), r.last.Load()
	return (last == nil || now.Sub(*last) >= period) && r.last.CompareAndSwap(last, &now)
}

// quota limits the number of messages in each period.
type quota struct {
	mu    sync.Mutex
	since time.Time // guarded by mu; when the period began
	used  int       // guarded by mu
}

// allow reports whether one more message may be logged now, at most the number most in each period.
func (q *quota) allow(most int, period time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); now.Sub(q.since) >= period {
		q.since, q.used = now, 0
	}
	q.used++
	return q.used <= most
}

// noticeOwnHolder is called when the holder is known. It logs once that the same holder of this
// process has made the caller wait for longer than Options.WatchdogLease, because the caller may
// wait for itself.
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
	at.blocked = time.Time{} // log once
	e := at.heldError()
	if e.SameProcess && !e.kept() && c.ownWaits.allows(lease) {
		c.warn("holdfast: a call has waited for a lock for longer than Options.WatchdogLease: "+
			e.holder()+e.advice(), "lock", at.lock.name, "owner", printable.Short(e.Owner))
	}
}

// noticeItself logs, with Options.Debug, that the goroutine of the attempt holds the lock itself.
// The context of the attempt does not show that. Otherwise the attempt would have returned
// [ErrDeadlock] or a hold.
func (at *attempt) noticeItself() {
	c := at.client
	id, holder := c.goroutine(), clientOf(at.holder.Owner)
	if id == 0 || holder == nil || at.holder.Next {
		return
	}
	if a := holder.acquisition(at.holder.Owner); a != nil && a.isOf(id) {
		e := at.heldError()
		c.warn("holdfast: a goroutine waits for a lock that it holds itself: "+
			e.holder()+e.advice(), "lock", at.lock.name, "owner", printable.Short(e.Owner),
			"waiter", c.here().String())
	}
}

// noticeOtherKind is called when the holder is known. It logs, once for each name, that the holder
// uses another kind of lock. Nothing else shows that if the holder is in another process.
func (at *attempt) noticeOtherKind() {
	c, l := at.client, at.lock
	held, wanted := owner.KindOf(at.holder.Owner), l.wakes
	if held == owner.Unknown || held == owner.Kept || held == wanted || !c.kinds.add(l.name) {
		return
	}
	c.warn(fmt.Sprintf("holdfast: a caller waits for a %s lock, but the name is held as a %s lock, "+
		"so the caller notices the release up to %v late; use one kind of lock for one name",
		wanted, held, longestPause), "lock", l.name,
		"owner", printable.Short(at.holder.Owner))
}

// names is a set of names that the client logs once.
type names struct {
	mu  sync.Mutex
	has map[string]bool // guarded by mu
}

// add adds a name, and reports whether it was missing.
func (ns *names) add(name string) bool {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.has[name] {
		return false
	}
	if ns.has == nil || len(ns.has) >= mostNames {
		ns.has = make(map[string]bool)
	}
	ns.has[name] = true
	return true
}

// isOf reports whether a goroutine acquired a level.
func (a *acquisition) isOf(goroutine uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.levels, func(l *level) bool { return l.goroutine == goroutine })
}
