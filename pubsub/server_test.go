package pubsub

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// protocols runs a test with RESP3, and with RESP2, for which rueidis uses a second connection for
// pub/sub.
func protocols(t *testing.T, test func(t *testing.T, mutate func(*rueidis.ClientOption))) {
	t.Run("RESP3", func(t *testing.T) { test(t, func(*rueidis.ClientOption) {}) })
	t.Run("RESP2", func(t *testing.T) {
		test(t, func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true })
	})
}

// newHub returns a hub on one server, closed with the test.
func newHub(t testing.TB, s *redistest.Server, mutators ...func(*rueidis.ClientOption)) *Hub {
	client := s.Client(t, mutators...)
	route := func(context.Context, string, bool) (string, rueidis.Client, error) {
		return "", client, nil
	}
	h := New(Options{Route: route, linger: 50 * time.Millisecond})
	t.Cleanup(h.Close)
	return h
}

// subscribed requires that these channels are subscribed on the server soon, and no others.
func subscribed(t testing.TB, s *redistest.Server, channels ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.ElementsMatch(c, channels, s.DoStrings(t, "PUBSUB", "CHANNELS"))
	}, 5*time.Second, 5*time.Millisecond)
}

func TestPermitComesAfterTheServerHasSubscribed(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		s := newHub(t, server, mutate).Subscribe(Topic{Channel: "c"})
		take(t, s)
		require.Equal(t, []string{"c"}, server.DoStrings(t, "PUBSUB", "CHANNELS"))
		require.EqualValues(t, 1, server.DoInt(t, "PUBLISH", "c", "0"))
		take(t, s)
	})
}

// rueidis panics when the PING that it sends behind an UNSUBSCRIBE is refused.
func TestChannelsAreGivenUpOnAServerThatCannotSave(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		p := faultproxy.Start(t, server.Addr())
		h := newHub(t, server, mutate, p.Use)
		kept, left := h.Subscribe(Topic{Channel: "kept"}), h.Subscribe(Topic{Channel: "left"})
		take(t, kept)
		take(t, left)
		fault := p.Reply("PING", 1000, faultproxy.Misconf)
		left.Close()
		subscribed(t, server, "kept")
		// The connection was closed, so the subscribers that stay are subscribed again and wake.
		take(t, kept)
		require.Positive(t, fault.Done())
		require.EqualValues(t, 1, server.DoInt(t, "PUBLISH", "kept", "0"))
		take(t, kept)
		h.Close()
		subscribed(t, server)
	})
}

func TestThousandChannelsCostOneConnection(t *testing.T) {
	server := redistest.Start(t)
	h := newHub(t, server)
	subscriptions := make([]*Subscription, 1000)
	for i := range subscriptions {
		subscriptions[i] = h.Subscribe(Topic{Channel: fmt.Sprintf("channel:%d", i)})
	}
	for i, s := range subscriptions {
		take(t, s)
		server.Do(t, "PUBLISH", fmt.Sprintf("channel:%d", i), "0")
		take(t, s)
	}
	h.mu.Lock()
	require.Len(t, h.links, 1)
	h.mu.Unlock()
	for _, s := range subscriptions {
		s.Close()
	}
	subscribed(t, server)
}
