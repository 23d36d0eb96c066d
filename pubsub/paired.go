package pubsub

import (
	"strings"

	"github.com/redis/rueidis"
)

// paired are the names of the channels that go with others, so that a message
// on one of them is known for what it is. Hub.mu guards them.
type paired map[string]struct{}

// namesOf is what goes into one command for a channel. Called without mu, because
// it asks a function of the caller's.
func (h *Hub) namesOf(channel string) []string {
	if h.options.Paired == nil {
		return []string{channel}
	}
	return append([]string{channel}, h.options.Paired(channel)...)
}

// pair gives a channel the names that it is subscribed by next. Called with
// mu held.
func (h *Hub) pair(c *channel, names []string) {
	h.paired.forget(c)
	c.names, c.alone = names, nil
	for _, name := range c.names[1:] {
		h.paired[name] = struct{}{}
	}
}

// forget removes the paired channels of a channel.
func (cs paired) forget(c *channel) {
	for i, name := range c.names {
		if i > 0 {
			delete(cs, name)
		}
	}
}

// wanting returns the names of a channel that go into one command.
func (c *channel) wanting() []string {
	if c.alone != nil {
		return c.names[:1]
	}
	return c.names
}

// paired says whether the channel is confirmed with its paired channels. The
// server accepts a command as a whole or not at all, so the word about the
// channel's own name says it for all.
func (c *channel) paired() bool {
	return c.phase == confirmed && len(c.wanting()) > 1
}

// refusedInCompany sends a channel whose command the server refuses back to its
// link, to be subscribed without its paired channels: that they cannot be had must not
// keep anybody from hearing of the channel itself. It reports whether there was
// something to be left out. Called with hub.mu held.
func (l *link) refusedInCompany(c *channel, reply error) bool {
	switch {
	case judge(reply) != refused || len(c.wanting()) == 1:
		return false
	case c.subscribers.Len() == 0:
		l.hub.drop(c)
	default:
		c.alone = reply
		l.add(c)
	}
	return true
}

// unpaired returns why a channel that was accepted is without its paired channels,
// when it is and the operator should know; nil otherwise. Called with mu held.
func (h *Hub) unpaired(c *channel) error {
	// Nobody is told before: the refusal may have been for the channel itself.
	if c.alone == nil || !h.warned.first(c.names[1]) {
		return nil
	}
	return c.alone
}

// direct hands a message on a paired channel to whom it concerns. It runs on
// the reader of a connection, without mu.
func (h *Hub) direct(m rueidis.PubSubMessage) {
	defer h.calls.Done()
	h.options.OnDirect(m.Channel, m.Message)
}

// patterns names channels as ACL rules do.
func patterns(channels []string) string {
	return "&" + strings.Join(channels, " &")
}
