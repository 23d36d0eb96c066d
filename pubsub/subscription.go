package pubsub

import (
	"container/list"
	"fmt"
	"time"
)

// Subscription is one waiter on one channel. All methods are safe for
// concurrent use, and none of them blocks on the network.
type Subscription struct {
	hub     *Hub
	name    string
	topic   string
	permits chan struct{} // capacity 1: sent to under hub.mu only

	// Guarded by hub.mu. Nil once the subscription is closed, and from the start
	// when the hub was.
	channel *channel
	place   *list.Element
}

// C delivers permits. A receive consumes one: something may have changed, look
// again. Permits do not add up: however much happened since the last receive,
// there is one. The channel is never closed; after Close it stays silent.
func (s *Subscription) C() <-chan struct{} { return s.permits }

// Close leaves the channel. A permit that was not received is handed on to
// another subscriber of its topic. When this was the last one, the channel stays
// subscribed for [Options].Linger and is unsubscribed then. Close does not wait
// for that. Closing again does nothing.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	c := s.channel
	if c == nil {
		return
	}
	last := c.leave(s)
	select {
	case <-s.permits:
		c.wakeOne(s.topic)
	default:
	}
	if last && !h.closed {
		h.abandon(c)
	}
}

// Err returns why the server refuses the channel at present, nil when it does
// not. It is the server's own words, a *rueidis.RedisError for [errors.As], such as
// NOPERM; a connection that fails or a node that is starting is not a refusal.
// A refused channel is asked for again, less and less often, at most 30 s
// apart.
func (s *Subscription) Err() error {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.channel == nil || s.channel.refused == nil {
		return nil
	}
	return fmt.Errorf("pubsub: channel %q: %w", s.name, s.channel.refused)
}

// permit adds a permit and says whether there was none. Called with hub.mu
// held, so that a Subscription that is closing cannot swallow it.
func (s *Subscription) permit() bool {
	select {
	case s.permits <- struct{}{}:
		return true
	default:
		return false
	}
}

// abandon does what is due when a channel has lost its last subscriber. Called
// with mu held.
func (h *Hub) abandon(c *channel) {
	switch c.phase {
	case routing:
		h.drop(c)
		h.router.signal()
	case wanted:
		h.drop(c)
	case asking, confirmed:
		c.linger(time.Now())
	case leaving, dropped:
		// The reply to UNSUBSCRIBE finds that nobody is left.
	}
}
