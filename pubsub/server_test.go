package pubsub_test

import (
	"fmt"
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

// unwoken requires that there is no permit.
func unwoken(t testing.TB, s *pubsub.Subscription) {
	t.Helper()
	select {
	case <-s.C():
		require.FailNow(t, "an unexpected permit")
	default:
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

func TestPublishedMessageWakesOneOrAll(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		first := h.Subscribe(pubsub.Topic{Channel: "c"})
		second := h.Subscribe(pubsub.Topic{Channel: "c"})
		marker := h.Subscribe(pubsub.Topic{Channel: "marker"})
		for _, s := range []*pubsub.Subscription{first, second, marker} {
			woken(t, s, 5*time.Second)
		}
		// Messages of one connection arrive in order: everything published before the marker is
		// here, too.
		server.Do(t, "PUBLISH", "c", "0")
		server.Do(t, "PUBLISH", "marker", "0")
		woken(t, marker, 5*time.Second)
		woken(t, first, 5*time.Second)
		unwoken(t, second)

		server.Do(t, "PUBLISH", "c", "1")
		woken(t, first, 5*time.Second)
		woken(t, second, 5*time.Second)
	})
}

func TestCloseLeavesNothingSubscribed(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		for i := range 100 {
			woken(t, h.Subscribe(pubsub.Topic{Channel: fmt.Sprint(i)}), 5*time.Second)
		}
		h.Close()
		require.Empty(t, channels(t, server), "when Close returns")
	})
}
