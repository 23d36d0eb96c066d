package pubsub

import (
	"slices"
	"sync/atomic"

	"holdfast/internal/wait"
)

// Subscription is a waiter on one or several channels. All methods are safe for concurrent use, and
// never block on the network.
type Subscription struct {
	hub        *Hub
	topic      string
	permits    chan struct{} // sent to under hub.mu only
	retryAfter atomic.Int64  // the number of a permit, or 0 for a reason to ask; written under hub.mu

	// channels are the channels of the Subscription, Topic.Channel first. It is nil once the
	// Subscription is closed, and from the start if the hub was closed. Guarded by hub.mu.
	channels []*channel
}

// C returns the channel that delivers permits. After each receive, ask again, unless
// [Subscription.RetryAfter] names a later time. There is never more than one permit, no matter how
// much has happened since the last receive. The channel is never closed, and delivers nothing after
// Close.
func (s *Subscription) C() <-chan struct{} { return s.permits }

// RetryAfter returns the number of milliseconds after which the waiter should ask again, or 0 if
// the waiter should ask at once. The time counts from the receive. Call RetryAfter once after each
// receive from C, because a second call returns 0. The package documentation has a sample.
//
// While a permit with a number is not yet received, a later number or a permit to ask at once
// replaces this permit. A number never replaces a pending permit to ask.
func (s *Subscription) RetryAfter() int64 { return s.retryAfter.Swap(0) }

// Close leaves all channels of the Subscription. If a permit to ask is still unused, Close passes
// the permit to the next waiter in line with the same Name. As a permit does not say which channel
// it came from, Close does so on every channel of the Subscription.
//
// Close does not wait until the Hub has unsubscribed. The Hub unsubscribes from a confirmed channel
// a second after the last waiter has left, and drops a channel that is still routing or wanted at
// once. A second Close does nothing.
func (s *Subscription) Close() {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range s.channels {
		i := slices.Index(c.subscribers, s)
		c.subscribers = slices.Delete(c.subscribers, i, i+1)
	}
	unused := wait.Fired(s.permits) && s.retryAfter.Load() == 0 // others got the number too
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

// Paired reports whether [Topic].Channel is confirmed together with its paired channels. Paired
// returns false if the channel has no paired channels, if the server has rejected them, and after
// Close. The channels in [Topic].Also do not matter.
func (s *Subscription) Paired() bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.channels) > 0 && s.channels[0].isPaired()
}

// permit adds a permit, and returns false if a permit to ask is pending. A number above 0 is not a
// reason to ask. Called with hub.mu held, because otherwise a closing Subscription could swallow
// the permit.
func (s *Subscription) permit(number int64) bool {
	// In the other order, a number that is received in between would look like a pending permit to
	// ask.
	if s.retryAfter.Load() == 0 && len(s.permits) > 0 {
		return false
	}
	s.retryAfter.Store(number)
	wait.Fire(s.permits)
	return true
}
