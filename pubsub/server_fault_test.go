//go:build redis

package pubsub_test

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
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

func TestRestartedServerIsSubscribedAgainAndWakesAll(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		s := newHub(t, server, mutate).Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		server.Restart(t)
		woken(t, s, 5*time.Second)
		require.Equal(t, []string{"c"}, channels(t, server))
	})
}

// With RESP2 only the second connection, the one for pub/sub, is lost here.
func TestConnectionLostWithASubscribeInFlightIsNoticedAtOnce(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		var mu sync.Mutex
		var latest net.Conn
		h := newHub(t, server, mutate, func(o *rueidis.ClientOption) {
			o.DialCtxFn = func(
				ctx context.Context, address string, dialer *net.Dialer, _ *tls.Config,
			) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, "tcp", address)
				mu.Lock()
				defer mu.Unlock()
				latest = conn
				return conn, err
			}
		})
		woken(t, h.Subscribe(pubsub.Topic{Channel: "c"}), 5*time.Second)
		server.Pause(t)
		s := h.Subscribe(pubsub.Topic{Channel: "d"})
		require.Eventually(t,
			func() bool { return slices.Contains(ours(), "(*redisConnection).do") }, 5*time.Second,
			time.Millisecond)
		mu.Lock()
		require.NoError(t, latest.Close())
		mu.Unlock()
		server.Resume(t)
		woken(t, s, 3*time.Second) // less than the time-out for a server that does not reply
	})
}

func TestServerThatComesUpLaterConfirms(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		server.Kill(t)
		s := h.Subscribe(pubsub.Topic{Channel: "c"})
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

func TestCloseOnAHungServerIsBounded(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		woken(t, h.Subscribe(pubsub.Topic{Channel: "c"}), 5*time.Second)
		server.Pause(t)
		h.Subscribe(pubsub.Topic{Channel: "d"}) // a SUBSCRIBE that gets no reply
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
		server.Do(t, "ACL", "SETUSER", "ann", "on", ">secret", "~*", "+@all", "resetchannels",
			"&open:*")
		lines := new(logtest.Lines)
		client := server.Client(t, mutate,
			func(o *rueidis.ClientOption) { o.Username, o.Password = "ann", "secret" })
		h := pubsub.New(pubsub.Options{Route: toOneNode(client), Logger: lines.Logger()})
		t.Cleanup(h.Close)
		open := h.Subscribe(pubsub.Topic{Channel: "open:1"})
		refused := h.Subscribe(pubsub.Topic{Channel: "closed:1"})
		woken(t, open, 5*time.Second)
		told := func() []string { return lines.With("refuses the channel") }
		require.Eventually(t, func() bool { return len(told()) > 0 }, 5*time.Second,
			time.Millisecond)
		require.Contains(t, told()[0], "channel=closed:1")
		require.Contains(t, told()[0], "NOPERM")
		unwoken(t, refused)

		server.Do(t, "PUBLISH", "open:1", "0")
		woken(t, open, 5*time.Second)
		connections := server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub")
		require.Equal(t, 1, strings.Count(connections, "\n"), connections)

		// The rule is added, and the next attempt succeeds.
		server.Do(t, "ACL", "SETUSER", "ann", "&closed:*")
		woken(t, refused, 10*time.Second)
		unwoken(t, open)

		h.Close() // nothing is logged from here on
		require.Len(t, told(), 1)
		require.Contains(t, told()[0], "&closed:1")
	})
}

func TestWrongPasswordIsLogged(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	server.Do(t, "CONFIG", "SET", "requirepass", "changed") // existing connections stay
	lines := new(logtest.Lines)
	h := pubsub.New(pubsub.Options{Route: toOneNode(client), Logger: lines.Logger()})
	t.Cleanup(h.Close)
	s := h.Subscribe(pubsub.Topic{Channel: "c"})
	require.Eventually(t, func() bool { return len(lines.With("NOAUTH")) > 0 }, 5*time.Second,
		time.Millisecond)
	require.Contains(t, lines.With("NOAUTH")[0], "no connection to the node")
	unwoken(t, s)
}
