package pubsub

import (
	"container/list"
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

	// memberships has the channel that the Subscription was made for first. It is nil once the
	// Subscription is closed, and empty from the start when the hub was closed. Guarded by hub.mu.
	memberships []membership
	single      [1]membership // backs memberships of one channel, to save an allocation
}

// membership is the entry of a Subscription among the subscribers of a channel.
type membership struct {
	channel *channel
	element *list.Element
}

// newSubscription returns a Subscription that has joined no channel yet.
func newSubscription(h *Hub, topic string) *Subscription {
	s := &Subscription{hub: h, topic: topic, permits: make(chan struct{}, 1)}
	s.memberships = s.single[:0]
	return s
}

// C returns the channel that delivers permits. A receive consumes one: something may have changed,
// ask again. Permits do not add up: however much happened since the last receive, there is one. The
// channel is never closed; after Close it stays silent.
func (s *Subscription) C() <-chan struct{} { return s.permits }

// Advice returns the number of a permit that is no reason to ask, or 0 if there is a reason. Call
// it after receiving from C; each number is returned once. A number that arrives while a permit to
// ask is pending is dropped. It does not block.
func (s *Subscription) Advice() int64 { return s.advice.Swap(0) }

// Close leaves the channel, or all of them. A permit to ask that was not received goes to another
// subscriber of its topic on each channel, because it does not say which channel it is from. A
// channel that has lost its last subscriber stays subscribed for [Options].Linger and is
// unsubscribed then. Close does not wait for that. Closing again does nothing.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range s.memberships {
		m.channel.subscribers.Remove(m.element)
	}
	unused := wait.Fired(s.permits) && s.advice.Load() == 0 // others have heard the number too
	for _, m := range s.memberships {
		if unused {
			m.channel.wakeOne(s.topic)
		}
		if m.channel.subscribers.Len() == 0 {
			h.abandon(m.channel)
		}
	}
	s.memberships, s.single = nil, [1]membership{}
}

// Paired reports whether the channel is confirmed at present with its paired channels. It is false
// for a channel without paired channels, for one whose paired channels the server refuses, and once
// the Subscription or the Hub is closed. Of several channels only the first counts, the one that is
// not named under "also".
func (s *Subscription) Paired() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.memberships) > 0 && s.memberships[0].channel.isPaired()
}

// permit adds a permit, and returns false if there was one to ask already. A number above 0 is no
// reason to ask. Called with hub.mu held, so that a Subscription that is closing cannot swallow the
// permit.
func (s *Subscription) permit(number int64) bool {
	// In this order: a number that is received in between leaves no permit to ask behind.
	if s.advice.Load() == 0 && len(s.permits) > 0 {
		return false
	}
	s.advice.Store(number)
	wait.Fire(s.permits)
	return true
}
