package pubsub

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"holdfast/internal/wait"
)

// batch is the channels of one exchange with the server. names has the names for the command of
// each channel. The channel's own name comes first, because the push for the first name is the
// reply to SUBSCRIBE. The channels in withClassic also have a command for their classic channels,
// with the names in classic.
type batch struct {
	channels    []*channel
	names       [][]string
	withClassic []*channel
	classic     [][]string
	size        int // of the names, in bytes
}

// mostBytes limits the names of one exchange. Each exchange has [replyTimeout], and rueidis gives
// up a connection if the reply to a PING, behind everything sent before, takes about as long. So on
// a slow network, many channels take many exchanges, and each exchange is progress.
const mostBytes = 32 << 10

// full reports whether the exchange takes no more channels.
func (b *batch) full() bool { return b.size >= mostBytes }

// add adds a channel and puts it into phase p. Called with hub.mu held.
func (b *batch) add(c *channel, p phase) {
	c.phase = p
	b.channels = append(b.channels, c)
	names := append([]string{c.name}, c.paired...)
	b.names = append(b.names, names)
	if p == asking && len(c.classic) > 0 && !c.link.hub.noClassic {
		c.withClassic = true
	}
	if c.withClassic {
		b.withClassic, b.classic = append(b.withClassic, c), append(b.classic, c.classic)
		names = slices.Concat(names, c.classic)
	}
	for _, name := range names {
		b.size += len(name)
	}
}

// onSubscription handles a message of the server about a subscription, requested or not, on the
// reader of the connection. It ignores paired channels, because the server sends the same about
// their channel. It also ignores classic channels beside sharded channels, because the server
// confirms the sharded channel after them.
func (l *link) onSubscription(s rueidis.PubSubSubscription) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[s.Channel]
	sharded := s.Kind == "ssubscribe" || s.Kind == "sunsubscribe"
	switch {
	case c == nil || c.link != l: // from a connection that the channel has left
	case !sharded && len(c.classic) > 0:
	case strings.HasSuffix(s.Kind, "unsubscribe"):
		if c.phase == confirmed {
			// The link did not ask, so the slot of the channel has moved to another node.
			h.requeue(c, true, new(wait.Backoff).Next())
		}
	case c.phase == asking || c.phase == confirmed:
		h.confirm(c)
	}
}

// confirm records that the server sends the messages of a channel. Called with mu held.
func (h *Hub) confirm(c *channel) {
	c.phase, c.tries = confirmed, wait.Backoff{}
	c.wakeAll(0) // earlier messages are lost
	delete(h.warned, c.name)
	if c.isPaired() {
		delete(h.warned, c.paired[0])
	}
}

// subscribe asks the server for channels. The hook confirms accepted channels before subscribe
// returns.
func (l *link) subscribe(b batch) error {
	h := l.hub
	// The classic channels come first, so that a confirmed channel misses no message on them.
	replies, err := l.conn.subscribe(h.running, b.classic, b.names)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			l.reportUnconfirmed(len(b.channels))
		}
		return err
	}
	h.mu.Lock()
	defer h.unlock()
	for i, c := range b.withClassic {
		if reply := replies[i]; reply != nil && c.link == l {
			c.withClassic = false
			h.reportNoClassic(c, reply)
		}
	}
	replies = replies[len(b.withClassic):]
	for i, c := range b.channels {
		switch reply := replies[i]; {
		case c.link != l:
		case reply != nil && c.phase == asking:
			l.denied(c, reply)
		case reply == nil:
			if c.phase == asking {
				h.confirm(c) // the server does not distinguish the two kinds of channels
			}
			if c.unpaired != nil {
				c.unpaired()
			}
		}
	}
	if out, failed := h.outages[l.node]; failed && slices.Contains(replies, nil) {
		delete(h.outages, l.node)
		if out.logged {
			h.log(slog.LevelInfo, "holdfast: connected to the node again", "node", l.node)
		}
	}
	return nil
}

// reportUnconfirmed reports, once for each outage, that the server does not confirm channels.
func (l *link) reportUnconfirmed(channels int) {
	h := l.hub
	h.mu.Lock()
	defer h.unlock()
	out := h.outages[l.node]
	if !out.logged {
		out.logged, out.until = true, time.Now() // giveBack forgets an outage without a time
		h.outages[l.node] = out
		h.log(slog.LevelWarn, "holdfast: the server did not confirm subscriptions in time, "+
			"so holdfast subscribes again on another connection, and waiters ask every few seconds",
			"node", l.node, "channels", channels, "timeout", replyTimeout)
	}
}

// denied handles the error reply to SUBSCRIBE of a channel. Called with hub.mu held.
func (l *link) denied(c *channel, reply error) {
	h, moved := l.hub, redirects(reply)
	switch {
	case moved || startsWith(reply, "CLUSTERDOWN", "TRYAGAIN", "LOADING", "BUSY", "MASTERDOWN"):
		// Another node serves the channel, or the server does not know the node at the moment.
		delay := c.tries.Next()
		if moved && c.tries.Failures == 1 {
			delay = 0 // this is the first redirection
		}
		h.requeue(c, true, delay)
	case len(c.paired) > 0: // the ACL may allow the channel itself
		paired := c.paired
		h.pair(c, nil)
		c.unpaired = func() { h.reportUnpaired(c.name, paired, reply) }
		l.add(c)
	default:
		if h.warned.first(c.name) {
			h.log(slog.LevelWarn, "holdfast: the server rejects the channel, so "+
				"its waiters ask every few seconds", "channel", c.name, "error", reply,
				"remedy", advice(reply, []string{c.name}, h.options.Sharded))
		}
		// The configuration is the cause, so frequent requests gain nothing.
		h.requeue(c, false, c.tries.Within(time.Second, 30*time.Second))
	}
}

// reportUnpaired reports once that the server rejects the paired channels. Called with mu held.
func (h *Hub) reportUnpaired(channel string, paired []string, reply error) {
	switch {
	case !h.warned.first(paired[0]):
	case h.options.OnUnpaired != nil:
		h.reports = append(h.reports, func() { h.options.OnUnpaired(channel, reply) })
	default:
		h.log(slog.LevelWarn, "holdfast: the server rejects the paired channels of the channel, "+
			"so holdfast subscribes without them", "channel", channel, "paired", paired, "error", reply,
			"remedy", advice(reply, paired, h.options.Sharded))
	}
}

// unsubscribe unsubscribes from channels. If a channel has a subscriber by then, unsubscribe
// subscribes again.
func (l *link) unsubscribe(b batch) error {
	h := l.hub
	replies, err := l.conn.unsubscribe(h.running, b.classic, b.names)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.unlock()
	for i, c := range b.withClassic {
		if c.link == l {
			c.withClassic = false
		}
		h.forgoClassic(replies[i])
	}
	replies = replies[len(b.withClassic):]
	for i, c := range b.channels {
		switch reply := replies[i]; {
		case reply == nil:
			l.add(c)
		case redirects(reply): // the slot has moved, which ended the subscription
			h.requeue(c, true, 0)
		default:
			return reply // still subscribed, but closing the connection ends the subscription
		}
	}
	return nil
}

// unsubscribeStrays unsubscribes from classic channels whose sharded channels are on another link.
func (l *link) unsubscribeStrays(strays [][]string) error {
	h := l.hub
	replies, err := l.conn.unsubscribe(h.running, strays, nil)
	h.mu.Lock()
	defer h.unlock()
	h.forgoClassic(errors.Join(replies...))
	return err
}

// forgoClassic makes the hub subscribe to no more classic channels if the server has rejected
// UNSUBSCRIBE for some, and logs that once. Closing the connection would end these subscriptions,
// but also all others. Called with mu held.
func (h *Hub) forgoClassic(refusal error) {
	if refusal == nil || h.noClassic {
		return
	}
	h.noClassic = true
	h.log(slog.LevelWarn, "holdfast: the server rejects UNSUBSCRIBE, so holdfast subscribes to no "+
		"more classic channels; Redisson before 3.28 then does not wake waiters, which ask every few "+
		"seconds", "error", refusal, "remedy", "grant +unsubscribe in the ACL")
}

// reportNoClassic logs, once per hub, that the ACL forbids the classic channels. It ignores other
// errors, because the sharded channel then gets and reports the same error. Called with mu held.
func (h *Hub) reportNoClassic(c *channel, reply error) {
	if h.classicForbidden || !startsWith(reply, "NOPERM") {
		return
	}
	h.classicForbidden = true
	h.log(slog.LevelWarn, "holdfast: the server rejects classic channels, so Redisson before "+
		"3.28 does not wake waiters, which ask every few seconds; if no such Redisson is in use, set "+
		"Options.PubSub to PubSubSharded", "channel", c.name, "error", reply,
		"remedy", advice(reply, c.classic[1:], false))
}
