package pubsub

import (
	"slices"
	"sync/atomic"

	"holdfast/internal/wait"
)

// Subscription is one waiter on one channel, or on several. All methods are safe for concurrent
// use, and none of them blocks on the network.
type Subscription struct {
	hub     *Hub
	topic   string
	permits chan struct{} // sent to under hub.mu only
	advice  atomic.Int64  // the number of a permit that is no reason to ask; written under hub.mu

	// channels are those that it listens to, first the one that it was made for. It is nil once the
	// Subscription is closed, and from the start when the hub was closed. Guarded by hub.mu.
	channels []*channel
}

// C returns the channel that delivers permits. A receive consumes one: something may have changed,
// ask again. Permits do not add up: however much happened since the last receive, there is one. The
// channel is never closed; after Close it stays silent.
func (s *Subscription) C() <-chan struct{} { return s.permits }

// Advice returns the number that the last permit carried, or 0 if that permit is a reason to ask.
// Call it after receiving from C; each number is returned once. A number that arrives while a
// permit to ask is pending is dropped. It does not block.
func (s *Subscription) Advice() int64 { return s.advice.Swap(0) }

// Close leaves the channel, or all of them. A permit to ask that was not received goes to another
// subscriber of its topic on each channel, because it does not say which channel it is from. A
// channel that has lost its last subscriber is unsubscribed after a second. Close does not wait for
// that. Closing again does nothing.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range s.channels {
		i := slices.Index(c.subscribers, s)
		c.subscribers = slices.Delete(c.subscribers, i, i+1)
	}
	unused := wait.Fired(s.permits) && s.advice.Load() == 0 // others have heard the number too
	for _, c := range s.channels {
		if unused {
			c.wakeOne(s.topic)
		}
		if len(c.subscribers) == 0 {
			h.abandon(c)
		}
	}
	s.channels = nil
}

// Paired reports whether the channel is confirmed at present with its paired channels. It is false
// for a channel that has none or whose paired channels the server refuses, and once the
// Subscription or the Hub is closed. Of several channels only Topic.Channel counts.
func (s *Subscription) Paired() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.channels) > 0 && s.channels[0].isPaired()
}

// permit adds a permit, and returns false if there was one to ask already. A number above 0 is no
// reason to ask. Called with hub.mu held, or a Subscription that closes could swallow the permit.
func (s *Subscription) permit(number int64) bool {
	// In this order: a number that is received in between leaves no permit to ask behind.
	if s.advice.Load() == 0 && len(s.permits) > 0 {
		return false
	}
	s.advice.Store(number)
	wait.Fire(s.permits)
	return true
}
