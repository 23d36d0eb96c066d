package pubsub

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// confirmedTrio returns three subscribers of a confirmed channel that have used the permits of the
// confirmation.
func confirmedTrio(t *testing.T) (first, second, third *Subscription, conn *fakeConnection) {
	h, f := newFake(t, Options{})
	first = h.Subscribe(Topic{Channel: "c"})
	second = h.Subscribe(Topic{Channel: "c"})
	require.False(t, has(first), "a permit before the server confirmed")
	r := f.next(t, "subscribe")
	require.Equal(t, []string{"c"}, r.channels)
	r.accept()
	third = h.Subscribe(Topic{Channel: "c"}) // has its permit at once
	require.Equal(t, []bool{true, true, true}, hold(first, second, third))
	require.Equal(t, []bool{false, false, false}, hold(first, second, third))
	return first, second, third, r.conn
}

// hold returns which subscribers have a permit, and takes it.
func hold(subscribers ...*Subscription) (permits []bool) {
	for _, s := range subscribers {
		permits = append(permits, has(s))
	}
	return permits
}

func TestMessage0WakesOneSubscriberInTurn(t *testing.T) {
	first, second, third, conn := confirmedTrio(t)
	for turn := range 4 {
		conn.publish("c", "0")
		require.Equal(t, []bool{turn%3 == 0, turn == 1, turn == 2}, hold(first, second, third))
	}
	conn.publish("c", "0")
	conn.publish("c", "0") // one that has a permit already is skipped
	require.Equal(t, []bool{false, true, true}, hold(first, second, third))
}

func TestAnyOtherMessageWakesAll(t *testing.T) {
	first, second, third, conn := confirmedTrio(t)
	for _, payload := range []string{"1", "", "00", "unheard of", "-5", "2.5"} {
		conn.publish("c", payload)
		require.Equal(t, []bool{true, true, true}, hold(first, second, third), payload)
		require.Zero(t, first.RetryAfter(), payload)
	}
}

func TestLeaverPassesItsUnusedPermitOn(t *testing.T) {
	first, second, third, conn := confirmedTrio(t)
	conn.publish("c", "0") // for first
	first.Close()
	require.Equal(t, []bool{false, true, false}, hold(first, second, third))
}

func TestClosedHubSubscriptionsStayUsableAndSilent(t *testing.T) {
	first, second, third, conn := confirmedTrio(t)
	conn.publish("c", "0")
	h := first.hub
	h.Close()
	h.Close()
	conn.publish("c", "1")
	late := h.Subscribe(Topic{Channel: "c"})
	require.Equal(t, []bool{false, false, false}, hold(second, third, late))
	first.Close() // passes its permit on
	late.Close()
	require.Equal(t, []bool{true, false, false}, hold(second, third, late))
	<-conn.closed
}

func TestEachTopicHasItsOwnTurn(t *testing.T) {
	h, f := newFake(t, Options{})
	a1 := h.Subscribe(Topic{Channel: "c", Name: "a"})
	b1 := h.Subscribe(Topic{Channel: "c", Name: "b"})
	a2 := h.Subscribe(Topic{Channel: "c", Name: "a"})
	b2 := h.Subscribe(Topic{Channel: "c", Name: "b"})
	r := f.next(t, "subscribe")
	r.accept()
	require.Equal(t, []bool{true, true, true, true}, hold(a1, b1, a2, b2))
	for _, want := range [][]bool{{true, true, false, false}, {false, false, true, true}} {
		r.conn.publish("c", "0")
		require.Equal(t, want, hold(a1, b1, a2, b2))
	}
	r.conn.publish("c", "0")
	a1.Close() // within its topic
	require.Equal(t, []bool{true, true, false}, hold(b1, a2, b2))
}

func TestNumberIsNoReasonToAsk(t *testing.T) {
	first, second, _, conn := confirmedTrio(t)
	conn.publish("c", "1500")
	for _, s := range []*Subscription{first, second} {
		require.True(t, has(s))
		require.EqualValues(t, 1500, s.RetryAfter())
		require.Zero(t, s.RetryAfter(), "each number is reported once")
	}
	conn.publish("c", "1500")
	conn.publish("c", "700")
	require.True(t, has(first))
	require.EqualValues(t, 700, first.RetryAfter(), "the earliest counts")
	require.False(t, has(first))
	require.True(t, has(second))
	second.RetryAfter()

	// A number does not hide a reason to ask, in either order.
	for _, messages := range [][]string{{"900", "1"}, {"1", "900"}} {
		for _, message := range messages {
			conn.publish("c", message)
		}
		require.True(t, has(first))
		require.Zero(t, first.RetryAfter())
	}
}

func TestNumberThatWasNotReadHidesNoMessage0(t *testing.T) {
	first, second, _, conn := confirmedTrio(t)
	conn.publish("c", "1500")
	conn.publish("c", "0")
	require.Equal(t, []bool{true, true}, hold(first, second))
	require.Zero(t, first.RetryAfter())
	require.EqualValues(t, 1500, second.RetryAfter(), "one announcement makes one subscriber ask")
}

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

func TestSubscriberOfSeveralChannelsHearsAndLeavesAll(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
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
	h, f := newFake(t, Options{})
	s, conn := severally(t, h, f)
	first := h.Subscribe(Topic{Channel: "b", Name: "topic"})
	second := h.Subscribe(Topic{Channel: "c", Name: "topic"})
	stranger := h.Subscribe(Topic{Channel: "b", Name: "another topic"})
	hold(first, second, stranger) // the channels are confirmed
	conn.publish("a", "0")
	s.Close()
	require.Equal(t, []bool{true, true, false, false}, hold(first, second, stranger, s))
}

func TestFirstOfSeveralChannelsIsTheOneThatIsPaired(t *testing.T) {
	h, f := newFake(t, Options{Paired: func(channel string) []string {
		if channel == "c" {
			return pair(channel)
		}
		return nil
	}})
	started(t, h, f)
	first := h.Subscribe(Topic{Channel: "c", Name: "topic", Also: []string{"d"}})
	last := h.Subscribe(Topic{Channel: "d", Name: "topic", Also: []string{"c"}})
	f.confirm(t, last)
	require.True(t, first.Paired())
	require.False(t, last.Paired())
}
