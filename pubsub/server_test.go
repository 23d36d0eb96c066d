package pubsub_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

// protocols runs a test over RESP3, and over RESP2, where rueidis does its
// pub/sub on a second connection.
func protocols(t *testing.T, test func(t *testing.T, mutate func(*rueidis.ClientOption))) {
	t.Run("RESP3", func(t *testing.T) { test(t, func(*rueidis.ClientOption) {}) })
	t.Run("RESP2", func(t *testing.T) { test(t, resp2) })
}

func resp2(o *rueidis.ClientOption) {
	o.AlwaysRESP2 = true
	o.DisableCache = true
}

// newHub returns a hub on one server, closed with the test.
func newHub(t testing.TB, s *redistest.Server, mutators ...func(*rueidis.ClientOption)) *pubsub.Hub {
	h := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(s.Client(t, mutators...)), Linger: 50 * time.Millisecond})
	t.Cleanup(h.Close)
	return h
}

// woken requires a permit within d.
func woken(t testing.TB, s *pubsub.Subscription, d time.Duration) {
	t.Helper()
	select {
	case <-s.C():
	case <-time.After(d):
		require.FailNow(t, "no permit", "within %s; refusal: %v", d, s.Err())
	}
}

// unwoken requires that no permit is there.
func unwoken(t testing.TB, s *pubsub.Subscription) {
	t.Helper()
	select {
	case <-s.C():
		require.FailNow(t, "a permit out of nowhere")
	default:
	}
}

// channels is what the server knows to be subscribed.
func channels(t testing.TB, s *redistest.Server) []string {
	return s.DoStrings(t, "PUBSUB", "CHANNELS")
}

// deserted waits until nothing is subscribed.
func deserted(t testing.TB, s *redistest.Server) {
	t.Helper()
	require.Eventually(t, func() bool { return len(channels(t, s)) == 0 }, 5*time.Second, 5*time.Millisecond)
}

func TestPermitComesAfterTheServerHasSubscribed(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		s := newHub(t, server, mutate).Subscribe("c")
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
		first, second := h.Subscribe("c"), h.Subscribe("c")
		marker := h.Subscribe("marker")
		for _, s := range []*pubsub.Subscription{first, second, marker} {
			woken(t, s, 5*time.Second)
		}
		// Messages of one connection arrive in order: when the marker is here, so is
		// all that was published before.
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

func TestNothingIsSubscribedOrConnectedAfterTheLinger(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		before := server.DoString(t, "CLIENT", "LIST")
		s := h.Subscribe("c")
		woken(t, s, 5*time.Second)
		s.Close()
		deserted(t, server)
		require.Eventually(t, func() bool {
			return strings.Count(server.DoString(t, "CLIENT", "LIST"), "\n") <= strings.Count(before, "\n")
		}, 5*time.Second, 5*time.Millisecond)

		s = h.Subscribe("c")
		woken(t, s, 5*time.Second)
		s.Close()
	})
}

func TestCloseLeavesNothingSubscribed(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		for i := range 100 {
			woken(t, h.Subscribe(fmt.Sprint(i)), 5*time.Second)
		}
		h.Close()
		require.Empty(t, channels(t, server), "at the moment Close returns")
	})
}

func TestKilledConnectionIsReplacedAndEverybodyWakes(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		a, b := h.Subscribe("a"), h.Subscribe("b")
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

func TestRestartedServerIsSubscribedAgainAndEverybodyWakes(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		s := newHub(t, server, mutate).Subscribe("c")
		woken(t, s, 5*time.Second)
		server.Restart(t)
		woken(t, s, 5*time.Second)
		require.Equal(t, []string{"c"}, channels(t, server))
	})
}

// With RESP2 only the second connection is lost here, the one for pub/sub.
func TestConnectionLostWithASubscribeInFlightIsNoticedAtOnce(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		var mu sync.Mutex
		var latest net.Conn
		h := newHub(t, server, mutate, func(o *rueidis.ClientOption) {
			o.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, "tcp", address)
				mu.Lock()
				defer mu.Unlock()
				latest = conn
				return conn, err
			}
		})
		woken(t, h.Subscribe("c"), 5*time.Second)
		server.Pause(t)
		s := h.Subscribe("d")
		require.Eventually(t, func() bool { return slices.Contains(ours(), "(*redisConnection).do") },
			5*time.Second, time.Millisecond)
		mu.Lock()
		require.NoError(t, latest.Close())
		mu.Unlock()
		server.Resume(t)
		woken(t, s, 3*time.Second) // less than the patience with a server that does not answer
	})
}

func TestServerThatComesUpLaterConfirms(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		server.Kill(t)
		s := h.Subscribe("c")
		unwoken(t, s)
		server.Restart(t)
		woken(t, s, 5*time.Second)
		require.Equal(t, []string{"c"}, channels(t, server))
	})
}

func TestHungServerIsNoticedAndSubscribedAgain(t *testing.T) {
	server := redistest.Start(t)
	h := newHub(t, server, func(o *rueidis.ClientOption) {
		o.Dialer.KeepAlive = 50 * time.Millisecond
		o.ConnWriteTimeout = 200 * time.Millisecond
	})
	s := h.Subscribe("c")
	woken(t, s, 5*time.Second)
	before := server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub")
	server.Pause(t)

	// Neither of these talks to the server.
	start := time.Now()
	h.Subscribe("d").Close()
	other := h.Subscribe("e")
	require.Less(t, time.Since(start), 100*time.Millisecond)

	require.Eventually(t, func() bool { return pubsub.Links(h) == 0 }, 5*time.Second, time.Millisecond,
		"the connection was not given up")
	server.Resume(t)
	woken(t, s, 5*time.Second)
	woken(t, other, 5*time.Second)
	require.NotEqual(t, before, server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub"))
}

func TestCloseOnAHungServerIsBounded(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		woken(t, h.Subscribe("c"), 5*time.Second)
		server.Pause(t)
		h.Subscribe("d") // a SUBSCRIBE that gets no reply
		start := time.Now()
		h.Close()
		require.Less(t, time.Since(start), 4*time.Second)
		server.Resume(t)
		deserted(t, server)
	})
}

func TestRefusedChannelDisturbsNoOther(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		server.Do(t, "ACL", "SETUSER", "ann", "on", ">secret", "~*", "+@all", "resetchannels", "&open:*")
		var log bytes.Buffer
		client := server.Client(t, mutate, func(o *rueidis.ClientOption) { o.Username, o.Password = "ann", "secret" })
		h := pubsub.New(pubsub.Options{
			Route:  pubsub.SingleRoute(client),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		t.Cleanup(h.Close)
		open := h.Subscribe("open:1")
		refused := h.Subscribe("closed:1")
		woken(t, open, 5*time.Second)
		require.Eventually(t, func() bool { return refused.Err() != nil }, 5*time.Second, time.Millisecond)
		var reply *rueidis.RedisError
		require.ErrorAs(t, refused.Err(), &reply)
		require.Contains(t, reply.Error(), "NOPERM")
		require.NoError(t, open.Err())
		unwoken(t, refused)

		server.Do(t, "PUBLISH", "open:1", "0")
		woken(t, open, 5*time.Second)
		connections := server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub")
		require.Equal(t, 1, strings.Count(connections, "\n"), connections)

		// The rule is added; the channel is found open at the next attempt.
		server.Do(t, "ACL", "SETUSER", "ann", "&closed:*")
		woken(t, refused, 10*time.Second)
		require.NoError(t, refused.Err())
		unwoken(t, open)

		h.Close() // the logger is silent from here on
		require.Equal(t, 1, strings.Count(log.String(), "refuses the channel"), log.String())
		require.Contains(t, log.String(), "&closed:1")
	})
}

func TestWrongPasswordIsARefusal(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	server.Do(t, "CONFIG", "SET", "requirepass", "changed") // what is connected stays so
	s := newHubOf(t, client).Subscribe("c")
	require.Eventually(t, func() bool { return s.Err() != nil }, 5*time.Second, time.Millisecond)
	require.ErrorContains(t, s.Err(), "NOAUTH")
}

func newHubOf(t testing.TB, client rueidis.Client) *pubsub.Hub {
	h := pubsub.New(pubsub.Options{Route: pubsub.SingleRoute(client)})
	t.Cleanup(h.Close)
	return h
}

func TestThousandChannelsCostOneConnectionAndOneGoroutine(t *testing.T) {
	server := redistest.Start(t)
	h := newHub(t, server)
	subscriptions := make([]*pubsub.Subscription, 1000)
	for i := range subscriptions {
		subscriptions[i] = h.Subscribe(fmt.Sprintf("channel:%d", i))
	}
	for _, s := range subscriptions {
		woken(t, s, 10*time.Second)
	}
	connections := server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub")
	require.Equal(t, 1, strings.Count(connections, "\n"), connections)
	require.Contains(t, connections, " sub=1000 ")
	require.Eventually(t, func() bool { return slices.Equal(ours(), []string{"(*link).run"}) },
		5*time.Second, time.Millisecond)

	for i, s := range subscriptions {
		server.Do(t, "PUBLISH", fmt.Sprintf("channel:%d", i), "0")
		woken(t, s, 5*time.Second)
	}
	for _, s := range subscriptions {
		s.Close()
	}
	deserted(t, server)
	require.Eventually(t, func() bool { return len(ours()) == 0 }, 5*time.Second, time.Millisecond)
	h.Close()
}

// ours is the goroutines started by the package, by the function they run.
func ours() []string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var found []string
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		for _, function := range []string{"(*redisConnection).do", "(*link).run", "(*Hub).route"} {
			if strings.Contains(stack, "holdfast/pubsub."+function) {
				found = append(found, function)
				break
			}
		}
	}
	return found
}
