package faultproxy

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// listen subscribes a client to a channel, and returns its messages once the server has confirmed
// it. The client uses one connection for all channels, so that messages sent on others before have
// passed the proxy by then.
func listen(t *testing.T, c rueidis.Client, channel string) <-chan string {
	t.Helper()
	messages, confirmed, ended := make(chan string, 100), make(chan string), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { close(confirmed) })
	go func() {
		defer close(ended)
		_ = c.Receive(ctx, c.B().Subscribe().Channel(channel).Build(),
			func(m rueidis.PubSubMessage) { messages <- m.Message })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	heard(t, confirmed)
	return messages
}

func TestHeldMessagesComeInOrderAfterPassAndCommandsGoOn(t *testing.T) {
	versions(t, func(t *testing.T, version func(*rueidis.ClientOption)) {
		s, p := served(t)
		c := one(t, s, p, version)
		messages := listen(t, c, "news")
		p.HoldMessages()
		require.EqualValues(t, 1, s.DoInt(t, "PUBLISH", "news", "one"))
		require.EqualValues(t, 1, s.DoInt(t, "PUBLISH", "news", "two"))
		for range 10 {
			require.NoError(t, do(t, c, "INCR", "counter").Error())
		}
		other := listen(t, c, "other") // a confirmation is no message
		require.EqualValues(t, 1, s.DoInt(t, "PUBLISH", "other", "for the other"))
		require.Empty(t, messages)
		require.Empty(t, other)
		p.Pass()
		require.Equal(t, "one", heard(t, messages))
		require.Equal(t, "two", heard(t, messages))
		require.Equal(t, "for the other", heard(t, other))
		s.Do(t, "PUBLISH", "news", "three")
		require.Equal(t, "three", heard(t, messages))
	})
}

func TestDroppedMessagesAreLostAndTheSubscriptionGoesOn(t *testing.T) {
	versions(t, func(t *testing.T, version func(*rueidis.ClientOption)) {
		s, p := served(t)
		c := one(t, s, p, version)
		messages := listen(t, c, "news")
		p.DropMessages()
		require.EqualValues(t, 1, s.DoInt(t, "PUBLISH", "news", "one"))
		require.NoError(t, do(t, c, "PING").Error())
		listen(t, c, "other")
		p.Pass()
		s.Do(t, "PUBLISH", "news", "two")
		require.Equal(t, "two", heard(t, messages))
	})
}
