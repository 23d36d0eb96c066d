package pubsub

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// advised returns two subscribers of a confirmed channel, and what publishes a message on it.
func advised(t *testing.T) (first, second *Subscription, publish func(message string)) {
	h := New(Options{Route: new(fakeServer).route})
	t.Cleanup(h.Close)
	c := &channel{
		name:  "order",
		phase: confirmed,
		link:  &link{hub: h, wake: make(chan struct{}, 1)},
	}
	h.channels[c.name] = c
	first = &Subscription{hub: h, topic: "lock", permits: make(chan struct{}, 1)}
	second = &Subscription{hub: h, topic: "lock", permits: make(chan struct{}, 1)}
	c.join(first)
	c.join(second)
	return first, second, func(message string) {
		h.deliver(rueidis.PubSubMessage{Channel: "order", Message: message})
	}
}

func TestNumberThatWasNotReadHidesNoMessage0(t *testing.T) {
	first, second, publish := advised(t)
	publish("1500")
	publish("0")
	<-first.C()
	require.Zero(t, first.Advice())
	<-second.C()
	require.EqualValues(t, 1500, second.Advice(), "one announcement makes one subscriber ask")
}

func TestNumberIsNoReasonToAsk(t *testing.T) {
	first, second, publish := advised(t)

	publish("1500")
	for _, s := range []*Subscription{first, second} {
		<-s.C()
		require.EqualValues(t, 1500, s.Advice())
		require.Zero(t, s.Advice(), "each number is reported once")
	}

	publish("1500")
	publish("700")
	<-first.C()
	require.EqualValues(t, 700, first.Advice(), "the earliest counts")
	require.Empty(t, first.C())

	// A number does not hide a reason to ask, in either order.
	publish("900")
	publish("1")
	<-first.C()
	require.Zero(t, first.Advice())
	publish("1")
	publish("900")
	<-first.C()
	require.Zero(t, first.Advice())

	for _, other := range []string{"-5", "2.5", "text"} { // wakes all, as before
		publish(other)
		<-first.C()
		require.Zero(t, first.Advice(), other)
	}
}
