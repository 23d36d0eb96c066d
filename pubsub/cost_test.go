package pubsub

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func message(channel, text string) rueidis.PubSubMessage {
	return rueidis.PubSubMessage{Channel: channel, Message: text}
}

func TestDeliveryAndAMissedResumeAllocateNothing(t *testing.T) {
	h, f := newFake(t, Options{Paired: pair, OnDirect: func(string, string) {}})
	s, _ := started(t, h, f)
	other := h.Subscribe(Topic{Channel: "c"})
	take(t, other)
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
