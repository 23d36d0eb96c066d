package pubsub

// paired is the set of names of paired channels, by which their messages are
// recognized. It is guarded by Hub.mu.
type paired map[string]struct{}

// namesOf returns the names for one command for a channel. Called without mu,
// because it calls a function of the caller's.
func (h *Hub) namesOf(channel string) []string {
	if h.options.Paired == nil {
		return []string{channel}
	}
	return append([]string{channel}, h.options.Paired(channel)...)
}

// pair sets the names by which a channel is subscribed next. Called with mu held.
func (h *Hub) pair(c *channel, names []string) {
	h.paired.forget(c)
	c.names, c.unpaired = names, nil
	for _, name := range c.names[1:] {
		h.paired[name] = struct{}{}
	}
}

// forget removes the paired channels of a channel.
func (p paired) forget(c *channel) {
	for i, name := range c.names {
		if i > 0 {
			delete(p, name)
		}
	}
}

// group returns the names for one command: the channel's own first, then those of
// its paired channels unless the server refuses them.
func (c *channel) group() []string {
	if c.unpaired != nil {
		return c.names[:1]
	}
	return c.names
}

// paired reports whether the channel is confirmed with its paired channels. The
// server accepts a command as a whole or not at all, so a confirmation of the
// channel's own name confirms them all.
func (c *channel) paired() bool {
	return c.phase == confirmed && len(c.group()) > 1
}

// retryUnpaired returns a channel whose command was refused to its link, to be
// subscribed without its paired channels: the channel itself may be allowed. It
// reports false if there is nothing to leave out. Called with hub.mu held.
func (l *link) retryUnpaired(c *channel, reply error) bool {
	switch {
	case classify(reply) != refused || len(c.group()) == 1:
		return false
	case c.subscribers.Len() == 0:
		l.hub.drop(c)
	default:
		c.unpaired = reply
		l.add(c)
	}
	return true
}

// unpairedNews returns why an accepted channel is without its paired channels, if
// that has not been reported yet, else nil. Called with mu held. It is not called
// before the channel is accepted: the refusal may have been of the channel itself.
func (h *Hub) unpairedNews(c *channel) error {
	if c.unpaired == nil || !h.warned.first(c.names[1]) {
		return nil
	}
	return c.unpaired
}
