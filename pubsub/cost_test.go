package pubsub

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// lingering returns a hub with a lingering channel c, which is confirmed with its paired channels.
func lingering(t testing.TB) *Hub {
	h, f, _ := newPaired(t, Options{Linger: time.Hour, OnDirect: func(string, string) {}})
	s := h.Subscribe(Topic{Channel: "c"})
	f.next(t, "subscribe").accept()
	take(t, s)
	s.Close()
	return h
}

func message(channel, text string) rueidis.PubSubMessage {
	return rueidis.PubSubMessage{Channel: channel, Message: text}
}

func TestDeliveryAndAMissedResumeAllocateNothing(t *testing.T) {
	h := lingering(t)
	s, other := h.Resume(Topic{Channel: "c"}), h.Resume(Topic{Channel: "c"})
	require.NotNil(t, s)
	for name, f := range map[string]func(){
		"a message for one":     func() { h.deliver(message("c", "0")); has(s); has(other) },
		"a message for all":     func() { h.deliver(message("c", "1")); has(s); has(other) },
		"a direct message":      func() { h.deliver(message("c:direct", "yours")) },
		"a message for nobody":  func() { h.deliver(message("d", "0")) },
		"nothing to be resumed": func() { h.Resume(Topic{Channel: "d"}) },
		"looking for paired":    func() { s.Paired() },
		"a paired confirmation": func() {
			h.links[""].onSubscription(rueidis.PubSubSubscription{Kind: "subscribe", Channel: "c:direct"})
		},
	} {
		require.Zero(t, testing.AllocsPerRun(1000, f), name)
	}
}

// The objects are the Subscription, its permits, and the list of its channels.
func TestSubscribingToALingeringChannelAllocatesThreeObjects(t *testing.T) {
	h := lingering(t)
	require.LessOrEqual(t,
		testing.AllocsPerRun(1000, func() { h.Resume(Topic{Channel: "c"}).Close() }), 3.0)
	require.LessOrEqual(t,
		testing.AllocsPerRun(1000, func() { h.Subscribe(Topic{Channel: "c"}).Close() }), 3.0)
}
