package pubsub_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

// protocols runs a test with RESP3, and with RESP2, for which rueidis uses a second connection for
// pub/sub.
func protocols(t *testing.T, test func(t *testing.T, mutate func(*rueidis.ClientOption))) {
	t.Run("RESP3", func(t *testing.T) { test(t, func(*rueidis.ClientOption) {}) })
	t.Run("RESP2", func(t *testing.T) { test(t, resp2) })
}

func resp2(o *rueidis.ClientOption) {
	o.AlwaysRESP2 = true
	o.DisableCache = true
}

// newHub returns a hub on one server, closed with the test.
func newHub(
	t testing.TB, s *redistest.Server, mutators ...func(*rueidis.ClientOption),
) *pubsub.Hub {
	h := pubsub.New(
		pubsub.Options{Route: toOneNode(s.Client(t, mutators...)), Linger: 50 * time.Millisecond})
	t.Cleanup(h.Close)
	return h
}

// woken requires a permit within d.
func woken(t testing.TB, s *pubsub.Subscription, d time.Duration) {
	t.Helper()
	select {
	case <-s.C():
	case <-time.After(d):
		require.FailNow(t, "no permit", "within %s", d)
	}
}

// channels returns the channels that are subscribed on the server.
func channels(t testing.TB, s *redistest.Server) []string {
	return s.DoStrings(t, "PUBSUB", "CHANNELS")
}

func TestPermitComesAfterTheServerHasSubscribed(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		s := newHub(t, server, mutate).Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		require.Equal(t, []string{"c"}, channels(t, server))
		require.EqualValues(t, 1, server.DoInt(t, "PUBLISH", "c", "0"))
		woken(t, s, 5*time.Second)
	})
}
