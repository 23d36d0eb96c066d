package pubsub

import (
	"container/list"
	"context"
	"time"

	"github.com/redis/rueidis"
)

// link is one connection to one node, from the dial to its end, with the
// channels on it. It never redials: when its connection is lost, the router
// assigns the channels to a new link, maybe of another node.
type link struct {
	hub  *Hub
	node string
	wake chan struct{}

	// Guarded by hub.mu.
	members map[*channel]struct{}
	wanted  []*channel // phase wanted; also some that left that phase since
	idle    list.List  // of *channel, by idleSince; also some that are in use again
}

func newLink(h *Hub, node string) *link {
	return &link{
		hub:     h,
		node:    node,
		wake:    make(chan struct{}, 1),
		members: make(map[*channel]struct{}),
	}
}

// signal makes the link check for work.
func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// add takes a channel that is to be subscribed here. Called with hub.mu held.
func (l *link) add(c *channel) {
	c.phase = wanted
	c.link = l
	l.members[c] = struct{}{}
	l.wanted = append(l.wanted, c)
	l.signal()
}

// run is the goroutine of the link.
func (l *link) run(client rueidis.Client) {
	conn, err := l.hub.dial(client, l.hub.options.Sharded, rueidis.PubSubHooks{
		OnMessage:      l.hub.deliver,
		OnSubscription: l.onSubscription,
	})
	if err != nil {
		l.unreachable(err)
		return
	}
	// The channels go back before the connection is closed, which takes a second
	// when the server hangs: they can be subscribed elsewhere meanwhile.
	if l.serve(conn) != nil {
		l.broken()
	}
	conn.close()
}

// serve keeps the subscriptions on the server in step with the channels of the
// link. It returns nil when no channel is left, and an error when the connection
// is lost or the hub is closed.
func (l *link) serve(conn connection) error {
	ctx := l.hub.running
	for {
		now := time.Now()
		idle, want, next, more := l.todo(now)
		var err error
		switch {
		case !more:
			return nil
		case len(idle) > 0:
			err = l.unsubscribe(ctx, conn, idle)
		case len(want) > 0:
			err = l.subscribe(ctx, conn, want)
		default:
			err = l.sleep(ctx, conn, next.Sub(now), !next.IsZero())
		}
		if err != nil {
			return err
		}
	}
}

// todo takes the next batch of work. When there is none, next is when the first
// idle channel has lingered long enough, zero if no channel is idle. more is false
// when the link has no channels. It has left the hub then, so that no channel can
// be added.
func (l *link) todo(now time.Time) (idle, want []*channel, next time.Time, more bool) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(l.members) == 0 {
		l.remove()
		return nil, nil, next, false
	}
	for e := l.idle.Front(); e != nil; e = l.idle.Front() {
		c := e.Value.(*channel)
		if c.subscribers.Len() == 0 {
			if until := c.idleSince.Add(h.options.Linger); until.After(now) {
				next = until
				break
			}
			c.phase = leaving
			idle = append(idle, c)
		}
		c.notIdle()
	}
	if len(idle) > 0 {
		return idle, nil, next, true
	}
	for _, c := range l.wanted {
		if c.link == l && c.phase == wanted {
			c.phase = asking
			want = append(want, c)
		}
	}
	l.wanted = nil
	return nil, want, next, true
}

// sleep waits for something to do.
func (l *link) sleep(ctx context.Context, conn connection, d time.Duration, timed bool) error {
	var expired <-chan time.Time
	if timed {
		timer := time.NewTimer(d)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-l.wake:
	case <-expired:
	case err := <-conn.lost():
		return lostError(err)
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// remove takes the link out of the hub. Called with hub.mu held.
func (l *link) remove() {
	if l.hub.links[l.node] == l {
		delete(l.hub.links, l.node)
	}
}

// broken gives the channels back to the router after the connection was lost.
func (l *link) broken() {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	l.giveBack(false, h.outages.failed(l.node, time.Now()).until)
}

// unreachable gives the channels back after a dial that failed.
func (l *link) unreachable(err error) {
	h := l.hub
	h.mu.Lock()
	out := h.outages.failed(l.node, time.Now())
	news := !out.logged && !h.closed
	out.logged = true
	if reply := refusal(err); reply != nil {
		for c := range l.members {
			c.refused = reply
		}
	}
	l.giveBack(true, out.until)
	h.mu.Unlock()

	if news {
		h.logger.Warn(
			"pubsub: no connection to the node; waiters fall back to polling until there is one",
			"node", l.node, "error", err)
	}
}

// giveBack returns all channels of the link to the router. Called with hub.mu held.
func (l *link) giveBack(refresh bool, due time.Time) {
	l.remove()
	if l.hub.closed {
		return
	}
	for c := range l.members {
		l.hub.requeue(c, refresh, due)
	}
}
