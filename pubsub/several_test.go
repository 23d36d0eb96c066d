package pubsub

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// severally returns a subscriber of the channels a, b and c, confirmed and without a permit, and
// the connection.
func severally(t *testing.T, h *Hub, f *fakeServer) (*Subscription, *fakeConnection) {
	t.Helper()
	s := h.Subscribe(Topic{Channel: "a", Name: "topic", Also: []string{"b", "c"}})
	var conn *fakeConnection
	for confirmed := 0; confirmed < 3; {
		r := f.next(t, "subscribe")
		confirmed += len(r.channels)
		r.accept()
		conn = r.conn
	}
	take(t, s)
	require.False(t, has(s), "permits do not add up")
	return s, conn
}

func TestSubscriberOfSeveralChannelsGetsPermitsFromEach(t *testing.T) {
	h, f, _ := newFake(t, Options{})
	s, conn := severally(t, h, f)
	for _, channel := range []string{"a", "b", "c"} {
		for _, message := range []string{"0", "1"} {
			conn.publish(channel, message)
			require.True(t, has(s), "%s on %s", message, channel)
			require.False(t, has(s))
		}
	}
	conn.publish("d", "1")
	require.False(t, has(s))
}

func TestCloseLeavesAllChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s, conn := severally(t, h, f)
		s.Close()
		s.Close()
		r := f.next(t, "unsubscribe")
		require.ElementsMatch(t, []string{"a", "b", "c"}, r.channels)
		r.accept()
		<-conn.closed
		gone(t, h)
		conn.publish("b", "1")
		require.False(t, has(s))
	})
}

func TestLeaverOfSeveralChannelsPassesItsPermitOnInEach(t *testing.T) {
	h, f, _ := newFake(t, Options{})
	s, conn := severally(t, h, f)
	first := h.Subscribe(Topic{Channel: "b", Name: "topic"})
	second := h.Subscribe(Topic{Channel: "c", Name: "topic"})
	stranger := h.Subscribe(Topic{Channel: "b", Name: "another topic"})
	for _, other := range []*Subscription{first, second, stranger} {
		take(t, other) // the channels are confirmed
	}
	conn.publish("a", "0")
	s.Close()
	require.Equal(t, []bool{true, true, false}, []bool{has(first), has(second), has(stranger)})
	require.False(t, has(s))
}

func TestFirstOfSeveralChannelsIsTheOneThatIsPaired(t *testing.T) {
	h, f, _ := newFake(t, Options{Paired: func(channel string) []string {
		if channel == "c" {
			return pair(channel)
		}
		return nil
	}})
	started(t, h, f)
	first := h.Subscribe(Topic{Channel: "c", Name: "topic", Also: []string{"d"}})
	last := h.Subscribe(Topic{Channel: "d", Name: "topic", Also: []string{"c"}})
	f.next(t, "subscribe").accept()
	take(t, last)
	require.True(t, first.Paired())
	require.False(t, last.Paired())
}
