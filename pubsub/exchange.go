package pubsub

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// onSubscription handles what the server says about a subscription, asked for or
// not. It ignores the paired channels, because the server says the same about their
// channel. It runs on the reader of the connection.
func (l *link) onSubscription(s rueidis.PubSubSubscription) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[s.Channel]
	if c == nil || c.link != l {
		return // said on a connection that the channel has left
	}
	if strings.HasSuffix(s.Kind, "unsubscribe") {
		if c.phase == confirmed {
			// We did not ask for it: its slot has moved to another node.
			h.requeue(c, true, time.Now().Add(backoff(1)))
		}
		return
	}
	if c.phase == asking || c.phase == confirmed {
		c.confirm()
		delete(h.warned, c.name)
		if c.paired() {
			delete(h.warned, c.names[1])
		}
	}
}

// objection is a refusal that has not been reported yet.
type objection struct {
	channel string
	paired  []string // the channels that are refused; nil if it is the channel itself
	reply   error
}

// subscribe asks the server for channels in phase asking. The hook has confirmed
// those that it accepts by the time the replies are here.
func (l *link) subscribe(ctx context.Context, conn connection, channels []*channel) error {
	h := l.hub
	replies, err := conn.subscribe(ctx, h.groups(channels))
	if err != nil {
		return err
	}
	h.mu.Lock()
	var objections []objection
	now := time.Now()
	for i, c := range channels {
		switch reply := replies[i]; {
		case c.link != l:
		case reply == nil:
			if why := h.unpairedNews(c); why != nil {
				objections = append(objections, objection{c.name, c.names[1:], why})
			}
		case c.phase == asking && l.denied(c, reply, now):
			objections = append(objections, objection{c.name, nil, reply})
		}
	}
	recovered := slices.Contains(replies, nil) && h.outages.over(l.node)
	h.mu.Unlock()

	// Without mu, because a log handler may block.
	if recovered {
		h.logger.Info("pubsub: connected to the node again", "node", l.node)
	}
	for _, o := range objections {
		switch {
		case o.paired == nil:
			h.logger.Warn(
				"pubsub: the server refuses the channel; its waiters fall back to polling",
				"channel", o.channel, "error", o.reply,
				"remedy", advice(o.reply, []string{o.channel}, h.options.Sharded))
		case h.options.OnUnpaired != nil:
			h.options.OnUnpaired(o.channel, o.reply)
		default:
			h.logger.Warn(
				"pubsub: the server refuses the paired channels of the channel; "+
					"it is subscribed without them",
				"channel", o.channel, "paired", o.paired, "error", o.reply,
				"remedy", advice(o.reply, o.paired, h.options.Sharded))
		}
	}
	return nil
}

// denied returns a channel to the router after an error reply, and reports whether
// that is to be logged. Called with hub.mu held.
func (l *link) denied(c *channel, reply error, now time.Time) (news bool) {
	h := l.hub
	if l.retryUnpaired(c, reply) {
		return false
	}
	c.attempts++
	switch classify(reply) {
	case redirected:
		due := now
		if c.attempts > 1 { // the node that we were redirected to redirects us again
			due = now.Add(backoff(c.attempts))
		}
		h.requeue(c, true, due)
	case later:
		h.requeue(c, true, now.Add(backoff(c.attempts)))
	case refused:
		c.refused = reply
		news = h.warned.first(c.name)
		h.requeue(c, false, now.Add(refusedBackoff(c.attempts)))
	}
	return news
}

// unsubscribe unsubscribes from channels in phase leaving. A channel that has got a
// subscriber meanwhile is subscribed again.
func (l *link) unsubscribe(ctx context.Context, conn connection, channels []*channel) error {
	h := l.hub
	replies, err := conn.unsubscribe(ctx, h.groups(channels))
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, c := range channels {
		reply := replies[i]
		switch {
		case reply != nil && classify(reply) != redirected:
			return reply // still subscribed: closing the connection ends that too
		case c.subscribers.Len() == 0:
			h.drop(c)
		case reply != nil:
			// The slot has moved, which ended the subscription.
			h.requeue(c, true, time.Time{})
		default:
			l.add(c)
		}
	}
	return nil
}

// groups returns the names for the command of each channel. The channel's own name
// comes first, because a SUBSCRIBE is answered by the push for the first name.
func (h *Hub) groups(channels []*channel) [][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	groups := make([][]string, len(channels))
	for i, c := range channels {
		groups[i] = c.group()
	}
	return groups
}
