//go:build redis

package pubsub_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

// deserted waits until none is subscribed.
func deserted(t testing.TB, s *redistest.Server) {
	t.Helper()
	require.Eventually(t, func() bool { return len(channels(t, s)) == 0 }, 5*time.Second,
		5*time.Millisecond)
}

func TestNothingIsSubscribedOrConnectedAfterTheLinger(t *testing.T) {
	protocols(t, func(t *testing.T, mutate func(*rueidis.ClientOption)) {
		server := redistest.Start(t)
		h := newHub(t, server, mutate)
		before := server.DoString(t, "CLIENT", "LIST")
		s := h.Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		s.Close()
		deserted(t, server)
		require.Eventually(t, func() bool {
			return strings.Count(server.DoString(t, "CLIENT", "LIST"), "\n") <= strings.Count(
				before, "\n")
		}, 5*time.Second, 5*time.Millisecond)

		s = h.Subscribe(pubsub.Topic{Channel: "c"})
		woken(t, s, 5*time.Second)
		s.Close()
	})
}

func newHubOf(t testing.TB, client rueidis.Client) *pubsub.Hub {
	h := pubsub.New(pubsub.Options{Route: toOneNode(client)})
	t.Cleanup(h.Close)
	return h
}

func TestThousandChannelsCostOneConnectionAndOneGoroutine(t *testing.T) {
	server := redistest.Start(t)
	h := newHub(t, server)
	subscriptions := make([]*pubsub.Subscription, 1000)
	for i := range subscriptions {
		subscriptions[i] = h.Subscribe(pubsub.Topic{Channel: fmt.Sprintf("channel:%d", i)})
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

// ours returns the goroutines of this package, by the functions that they run.
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
