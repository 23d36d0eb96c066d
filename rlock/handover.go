package rlock

import (
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/internal/transport"
	"holdfast/internal/waitqueue"
	"holdfast/lua"
)

// HandOver says how a lock gets from who releases it to those who wait for it. It concerns
// reentrant and fenced locks, and within a process the write side of a read-write lock.
type HandOver int

const (
	// HandOverToAll gives the lock to the next waiter of this process, for at most 16 times and 100
	// ms if others wait elsewhere, or to the one that has waited longest in any process of this
	// library. When others listen, such as clients of Redisson, and now and then in any case (after
	// 16 turns and 100 ms, or 4 and a second), it is announced to all instead, as by Redisson. On a
	// cluster it takes sharded channels.
	HandOverToAll HandOver = iota
	// HandOverLocal gives it to waiters of this process only.
	HandOverLocal
	// HandOverNone always announces it.
	HandOverNone
)

// handOver returns how releases hand locks over. One that was handed over would not be waited for
// at replicas.
func (o Options) handOver() transport.HandOver {
	if o.SyncReplicas > 0 {
		return transport.HandOverNone
	}
	return transport.HandOver(o.HandOver)
}

// grants has what is needed to tell what a grant message means. It is safe for concurrent use.
type grants struct {
	mu sync.Mutex
	// released has owners that are releasing a lock, of those that may hear only now that they were
	// granted it; guarded by mu.
	released map[string]struct{}
}

// releasing notes that an owner begins, or ends, to release its lock.
func (g *grants) releasing(owner string, begins bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !begins:
		delete(g.released, owner)
	case g.released == nil:
		g.released = map[string]struct{}{owner: {}}
	default:
		g.released[owner] = struct{}{}
	}
}

// releases reports whether an owner is releasing its lock.
func (g *grants) releases(owner string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.released[owner]
	return ok
}

// longestGrant is for how long a lock is cleaned up that was granted to a waiter of this client who
// is not known any more. Its lease is not either.
const longestGrant = time.Hour

// granted reads a message that says that a waiter of this client was granted a lock. Nobody has
// reason to say that of a waiter of another client, or on the channel of another lock.
func (c *Client) granted(channel, message string) {
	g, ok := lua.ParseGrant(message)
	if !ok || !strings.HasPrefix(g.Owner, c.id+":") ||
		!slices.Contains(lua.PairedChannels(lua.Channel(g.Lock), c.id), channel) {
		return
	}
	streak := waitqueue.Streak{Count: g.Streak.Count, Began: g.Streak.Began}
	m := waitqueue.Message{
		Owner:  g.Owner,
		Ticket: waitqueue.Ticket(g.Ticket),
		Fence:  g.Fence,
		Streak: streak,
	}
	if c.queues.Deliver(m, func(name queueName) bool { return name.lock == g.Lock }) {
		return
	}
	for _, a := range c.acquisitions() {
		if a.owner == g.Owner {
			return // it has asked, and was told before
		}
	}
	if c.grants.releases(
		g.Owner,
	) { // after the acquisitions: one has left them only after this was noted
		return
	}
	lock := c.NewLock(g.Lock)
	if g.Fence != 0 {
		lock = c.NewFencedLock(
			g.Lock,
		) // whose release can give the lock to the next one that wants a number
	}
	c.cleaner.add(cleanup{lock: lock, request: request{owner: g.Owner, streak: streak},
		until: time.Now().Add(longestGrant)})
}
