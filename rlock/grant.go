package rlock

import (
	"slices"
	"strings"
	"time"

	"holdfast/internal/waitqueue"
	"holdfast/internal/wire"
)

// longestGrant is for how long a grant to an unknown waiter, with an unknown lease, is cleaned up.
const longestGrant = time.Hour

// granted handles a grant message. It ignores those for other clients or on another lock's channel.
func (c *Client) granted(channel, message string) {
	g, ok := wire.ParseGrant(message)
	if !ok || !strings.HasPrefix(g.Owner, c.id+":") ||
		!slices.Contains(wire.PairedChannels(wire.Channel(g.Lock), c.id), channel) {
		return
	}
	streak := waitqueue.Streak{Count: g.Streak.Count, Began: g.Streak.Began}
	m := waitqueue.Message{Owner: g.Owner, Ticket: waitqueue.Ticket(g.Ticket), Local: g.Local,
		Fence: g.Fence, Streak: streak}
	if c.queues.Deliver(m, func(name queueName) bool { return name.lock == g.Lock }) ||
		c.acquisition(g.Owner) != nil {
		return // the waiter has the message now, or had acquired the lock by asking
	}
	// Checked after the acquisitions, because releasing is noted before an acquisition ends.
	if _, releases := c.releasing.Load(g.Owner); releases {
		return
	}
	lock := c.lockOf(g.Lock)
	if g.Fence != 0 {
		lock = c.fencedOf(g.Lock) // its release can grant the next waiter a token
	}
	c.cleaner.add(cleanup{lock: lock, request: request{owner: g.Owner, streak: streak},
		until: time.Now().Add(longestGrant)})
}
