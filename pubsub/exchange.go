package pubsub

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// onSubscription runs on the reader of the connection for everything that the
// server says about a subscription, asked for or not.
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
	}
}

// objection is a refusal that the operator has not been told of.
type objection struct {
	channel string
	reply   error
}

// subscribe asks the server for channels in phase asking. Those that it accepts
// have been confirmed by the hook when their replies are here.
func (l *link) subscribe(ctx context.Context, conn connection, channels []*channel) error {
	replies, err := conn.subscribe(ctx, names(channels))
	if err != nil {
		return err
	}
	h := l.hub
	h.mu.Lock()
	var objections []objection
	now := time.Now()
	for i, c := range channels {
		if c.link == l && c.phase == asking && replies[i] != nil && l.denied(c, replies[i], now) {
			objections = append(objections, objection{c.name, replies[i]})
		}
	}
	recovered := slices.Contains(replies, nil) && h.outages.over(l.node)
	h.mu.Unlock()

	// A log handler may block, so nobody must have to wait for it.
	if recovered {
		h.logger.Info("pubsub: connected to the node again", "node", l.node)
	}
	for _, o := range objections {
		h.logger.Warn("pubsub: the server refuses the channel; its waiters fall back to polling",
			"channel", o.channel, "error", o.reply, "remedy", advice(o.reply, o.channel, h.options.Sharded))
	}
	return nil
}

// denied sends a channel back to the router after an error reply, and says
// whether the operator should know. Called with hub.mu held.
func (l *link) denied(c *channel, reply error, now time.Time) (news bool) {
	h := l.hub
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
	replies, err := conn.unsubscribe(ctx, names(channels))
	if err != nil {
		return err
	}
	h := l.hub
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

func names(channels []*channel) []string {
	names := make([]string, len(channels))
	for i, c := range channels {
		names[i] = c.name
	}
	return names
}
