package pubsub_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/pubsub"
)

// The demo's embedded server speaks only RESP2 once it has subscribed.
func TestEmbeddedServerWakesAndForgets(t *testing.T) {
	server := miniredis.RunT(t)
	option := rueidis.ClientOption{InitAddress: []string{server.Addr()}}
	resp2(&option)
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	h := pubsub.New(pubsub.Options{Route: toOneNode(client), Linger: 20 * time.Millisecond})
	t.Cleanup(h.Close)

	for range 3 {
		s := h.Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		require.Equal(t, 1, server.Publish("c", "0"))
		woken(t, s, 5*time.Second)
		s.Close()
		require.Eventually(t, func() bool { return len(server.PubSubChannels("")) == 0 },
			5*time.Second, time.Millisecond)
	}

	s := h.Subscribe(pubsub.Topic{Channel: "c"})
	woken(t, s, 5*time.Second)
	server.Close()
	require.Eventually(t, func() bool { return pubsub.Links(h) == 0 }, 5*time.Second,
		time.Millisecond)
	require.NoError(t, server.Restart())
	woken(t, s, 5*time.Second)
	h.Close()
	require.Empty(t, server.PubSubChannels(""))
}

func TestEmbeddedServerKnowsPairedChannels(t *testing.T) {
	server := miniredis.RunT(t)
	option := rueidis.ClientOption{InitAddress: []string{server.Addr()}}
	resp2(&option)
	client, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	direct := make(chan string, 1)
	h := pubsub.New(pubsub.Options{
		Route: toOneNode(client), Linger: 20 * time.Millisecond, Paired: pair,
		OnDirect: func(channel, message string) { direct <- channel + " " + message },
	})
	t.Cleanup(h.Close)
	for range 3 {
		s := h.Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		require.True(t, s.Paired())
		require.Eventually(t, func() bool { return len(server.PubSubChannels("")) == 3 },
			5*time.Second, time.Millisecond)
		require.Equal(t, 1, server.Publish("c:direct", "yours"))
		heard(t, direct, "c:direct yours")
		s.Close()
		require.Eventually(t, func() bool { return len(server.PubSubChannels("")) == 0 },
			5*time.Second, time.Millisecond)
	}
}

// pair names two paired channels for every channel, in its slot.
func pair(channel string) []string { return []string{channel + ":present", channel + ":direct"} }

// heard requires that OnDirect was called with want.
func heard(t testing.TB, direct <-chan string, want string) {
	t.Helper()
	select {
	case got := <-direct:
		require.Equal(t, want, got)
	case <-time.After(5 * time.Second):
		require.FailNow(t, "OnDirect was not called", "instead of %q", want)
	}
}
