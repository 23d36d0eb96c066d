//go:build redis

package pubsub_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

func TestKilledConnectionIsReplacedAndWakesAll(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		a, b := h.Subscribe(pubsub.Topic{Channel: "a"}), h.Subscribe(pubsub.Topic{Channel: "b"})
		woken(t, a, 5*time.Second)
		woken(t, b, 5*time.Second)
		for range 3 {
			require.EqualValues(t, 1, server.DoInt(t, "CLIENT", "KILL", "TYPE", "pubsub"))
			woken(t, a, 5*time.Second)
			woken(t, b, 5*time.Second)
			require.ElementsMatch(t, []string{"a", "b"}, channels(t, server))
		}
	})
}

func TestHungServerIsNoticedAndSubscribedAgain(t *testing.T) {
	server := redistest.Start(t)
	h := newHub(t, server, func(o *rueidis.ClientOption) {
		o.Dialer.KeepAlive = 50 * time.Millisecond
		o.ConnWriteTimeout = time.Second
	})
	s := h.Subscribe(pubsub.Topic{Channel: "c"})
	woken(t, s, 5*time.Second)
	before := server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub")
	server.Pause(t)

	// Neither of these calls needs the server.
	start := time.Now()
	h.Subscribe(pubsub.Topic{Channel: "d"}).Close()
	other := h.Subscribe(pubsub.Topic{Channel: "e"})
	require.Less(t, time.Since(start), 800*time.Millisecond)

	require.Eventually(t, func() bool { return pubsub.Links(h) == 0 }, 5*time.Second,
		time.Millisecond, "the connection is not given up")
	server.Resume(t)
	woken(t, s, 5*time.Second)
	woken(t, other, 5*time.Second)
	require.NotEqual(t, before, server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub"))
}
