package pubsub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/pubsub"
)

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
