package pubsub

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// onSubscription runs on the reader of the connection for everything that the
// server says about a subscription, asked for or not. What it says about the
// paired of a channel, it says about the channel too.
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

// objection is a refusal that the operator has not been told of.
type objection struct {
	channel string
	paired  []string // the refusal is about these; nil if it is about the channel
	reply   error
}

// subscribe asks the server for channels in phase asking. Those that it accepts
// have been confirmed by the hook when their replies are here.
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
			if why := h.unpaired(c); why != nil {
				objections = append(objections, objection{c.name, c.names[1:], why})
			}
		case c.phase == asking && l.denied(c, reply, now):
			objections = append(objections, objection{c.name, nil, reply})
		}
	}
	recovered := slices.Contains(replies, nil) && h.outages.over(l.node)
	h.mu.Unlock()

	// A log handler may block, so nobody must have to wait for it.
	if recovered {
		h.logger.Info("pubsub: connected to the node again", "node", l.node)
	}
	for _, o := range objections {
		switch {
		case o.paired == nil:
			h.logger.Warn(
				"pubsub: the server refuses the channel; its waiters fall back to polling",
				"channel",
				o.channel,
				"error",
				o.reply,
				"remedy",
				advice(o.reply, []string{o.channel}, h.options.Sharded),
			)
		case h.options.OnUnpaired != nil:
			h.options.OnUnpaired(o.channel, o.reply)
		default:
			h.logger.Warn(
				"pubsub: the server refuses the paired channels of the channel; it is subscribed without them",
				"channel",
				o.channel,
				"paired",
				o.paired,
				"error",
				o.reply,
				"remedy",
				advice(o.reply, o.paired, h.options.Sharded),
			)
		}
	}
	return nil
}

// denied sends a channel back to the router after an error reply, and says
// whether the operator should know. Called with hub.mu held.
func (l *link) denied(c *channel, reply error, now time.Time) (news bool) {
	h := l.hub
	if l.refusedInCompany(c, reply) {
		return false
	}
	c.attempts++
	switch judge(reply) {
	case redirected:
		due := now
		if c.attempts > 1 { // the node that we were sent to sends us on
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

// unsubscribe tells the server that channels in phase leaving are not needed. A
// subscriber may have come meanwhile: the server has forgotten us then, so the
// channel is subscribed again.
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
		case reply != nil && judge(reply) != redirected:
			return reply // still subscribed: closing the connection ends that too
		case c.subscribers.Len() == 0:
			h.drop(c)
		case reply != nil:
			// The slot has moved, and the subscription had ended with that.
			h.requeue(c, true, time.Time{})
		default:
			l.add(c)
		}
	}
	return nil
}

// groups returns for each channel what goes into its command. The channel's own
// name is the first in it: the answer to a SUBSCRIBE is here when the server has
// spoken of the first name.
func (h *Hub) groups(channels []*channel) [][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	groups := make([][]string, len(channels))
	for i, c := range channels {
		groups[i] = c.wanting()
	}
	return groups
}
