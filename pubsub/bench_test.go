//go:build redis

package pubsub_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

// Contended locks follow each other: the channel is subscribed already.
func BenchmarkSubscribeOnALingeringChannel(b *testing.B) {
	h := newHub(b, redistest.Start(b))
	s := h.Subscribe(pubsub.Topic{Channel: "c"})
	woken(b, s, 5*time.Second)
	s.Close()
	b.ReportAllocs()
	for b.Loop() {
		s := h.Subscribe(pubsub.Topic{Channel: "c"})
		s.Close()
	}
}

// Measures from PUBLISH until all waiters of a channel have woken.
func BenchmarkFanOut(b *testing.B) {
	for _, waiters := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			server := redistest.Start(b)
			client := server.Client(b)
			h := newHub(b, server)
			subscriptions := make([]*pubsub.Subscription, waiters)
			for i := range subscriptions {
				subscriptions[i] = h.Subscribe(pubsub.Topic{Channel: "c"})
				woken(b, subscriptions[i], 5*time.Second)
			}
			b.ReportAllocs()
			for b.Loop() {
				publish := client.B().Publish().Channel("c").Message("1").Build()
				if err := client.Do(b.Context(), publish).Error(); err != nil {
					b.Fatal(err)
				}
				for _, s := range subscriptions {
					<-s.C()
				}
			}
		})
	}
}
