//go:build redis

package pubsub

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/wait"
)

func TestNothingIsConnectedAfterTheLinger(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		clients := func() int { return strings.Count(server.DoString(t, "CLIENT", "LIST"), "\n") }
		before := clients()
		s := h.Subscribe(Topic{Channel: "c"})
		take(t, s)
		s.Close()
		subscribed(t, server)
		require.Eventually(t, func() bool { return clients() <= before }, 5*time.Second,
			5*time.Millisecond)
	})
}

func TestKilledConnectionIsReplacedAndWakesAll(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		a, b := h.Subscribe(Topic{Channel: "a"}), h.Subscribe(Topic{Channel: "b"})
		take(t, a)
		take(t, b)
		require.EqualValues(t, 1, server.DoInt(t, "CLIENT", "KILL", "TYPE", "pubsub"))
		take(t, a)
		take(t, b)
		subscribed(t, server, "a", "b")
	})
}

func TestHungServerIsNoticedAndSubscribedAgain(t *testing.T) {
	server := redistest.Start(t)
	h := newHub(t, server, func(o *rueidis.ClientOption) {
		o.Dialer.KeepAlive = 50 * time.Millisecond
		o.ConnWriteTimeout = time.Second
	})
	lost := make(chan struct{}, 1)
	h.options.OnLost = func() { wait.Fire(lost) }
	s := h.Subscribe(Topic{Channel: "c"})
	take(t, s)
	before := server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub")
	server.Pause(t)

	// Neither of these calls needs the server.
	h.Subscribe(Topic{Channel: "d"}).Close()
	other := h.Subscribe(Topic{Channel: "e"})
	select {
	case <-lost:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection is not given up")
	}
	server.Resume(t)
	take(t, s)
	take(t, other)
	require.NotEqual(t, before, server.DoString(t, "CLIENT", "LIST", "TYPE", "pubsub"))
}

func TestOnlyAFailedConnectionIsClosedWithoutFarewell(t *testing.T) {
	server := redistest.Start(t)
	dialled, err := dialRedis(t.Context(), server.Client(t), false,
		rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})
	require.NoError(t, err)
	c := dialled.(*redisConnection)
	t.Cleanup(c.close)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.subscribe(ctx, nil, [][]string{{"c"}})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, c.broken, "the server still listens after the caller's context ended")

	server.Kill(t)
	_, err = c.subscribe(t.Context(), nil, [][]string{{"c"}})
	require.Error(t, err)
	require.True(t, c.broken)
}
