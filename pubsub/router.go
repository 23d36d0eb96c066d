package pubsub

import (
	"context"
	"log/slog"
	"time"

	"holdfast/internal/wait"
)

// routeTimeout bounds one call of Options.Route.
const routeTimeout = 5 * time.Second

// router assigns channels to links. The router makes all delays between attempts, so a link never
// has to hold back a channel. Its goroutine exists only while there are channels to assign. Hub.mu
// guards the fields.
type router struct {
	queue   []*channel // in phase routing, or in that phase earlier
	running bool
	failing bool          // the last Route failed, and the router has logged that
	wake    chan struct{} // the queue has changed
}

// enqueue lets the router assign a channel after a delay. Called with mu held.
func (h *Hub) enqueue(c *channel, delay time.Duration) {
	c.phase = routing
	c.due = time.Now().Add(delay)
	h.router.queue = append(h.router.queue, c)
	if h.router.running {
		wait.Fire(h.router.wake)
		return
	}
	h.router.running = true
	h.work.Go(h.route)
}

// route assigns channels until the queue is empty or the hub is closed.
func (h *Hub) route() {
	for {
		due, next := h.dueChannels()
		switch {
		case len(due) > 0:
			refreshed := false
			for _, c := range due {
				refreshed = h.assign(c, !refreshed) || refreshed
			}
		case next.IsZero():
			return
		default:
			select {
			case <-time.After(time.Until(next)):
			case <-h.router.wake:
			case <-h.running.Done():
			}
		}
	}
}

// dueChannels takes the due channels off the queue. next is when the first of the other channels is
// due; zero if there are none. If the queue was empty, the router has stopped.
func (h *Hub) dueChannels() (due []*channel, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	queue := h.router.queue
	h.router.queue = nil
	for _, c := range queue {
		switch {
		case c.phase != routing: // dropped in the queue
		case !c.due.After(time.Now()):
			due = append(due, c)
		default:
			h.router.queue = append(h.router.queue, c)
			if next.IsZero() || c.due.Before(next) {
				next = c.due
			}
		}
	}
	h.router.running = len(due)+len(h.router.queue) > 0
	return due, next
}

// assign adds a channel to the link of its node. If Route fails or the node must not be dialed yet,
// assign adds the channel back to the queue. assign asks Route for a refresh only if mayRefresh is
// true, and reports whether Route has refreshed.
func (h *Hub) assign(c *channel, mayRefresh bool) (refreshed bool) {
	h.mu.Lock()
	// Only the router and the last leaving subscriber change a channel in phase routing.
	refresh, gone := c.refresh && mayRefresh, c.phase != routing
	h.mu.Unlock()
	if gone {
		return false
	}
	ctx, cancel := context.WithTimeout(h.running, routeTimeout)
	node, client, err := h.options.Route(ctx, c.name, refresh)
	cancel()
	paired, classic := h.options.Paired(c.name), h.options.Classic(c.name)

	h.mu.Lock()
	defer h.unlock()
	untilDial := time.Until(h.outages[node].until)
	switch {
	case c.phase != routing: // dropped meanwhile
	case err != nil:
		if !h.router.failing {
			h.log(slog.LevelWarn, "holdfast: no node serves the channel; "+
				"waiters ask every few seconds until a node does", "channel", c.name, "error", err)
		}
		h.router.failing = true
		h.enqueue(c, c.tries.Next())
	case untilDial > 0:
		h.router.failing = false
		h.enqueue(c, untilDial)
	default:
		h.router.failing, c.refresh = false, false
		h.pair(c, paired)
		c.classic = classic
		l := h.links[node]
		if l == nil {
			l = &link{hub: h, node: node, wake: make(chan struct{}, 1),
				members: make(map[*channel]struct{})}
			h.links[node] = l
			h.work.Go(func() { l.run(client) })
		}
		l.add(c)
	}
	return refresh && err == nil
}
