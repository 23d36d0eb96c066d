package pubsub

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// confirmedTrio returns three subscribers of a confirmed channel that have used the permits of the
// confirmation.
func confirmedTrio(t *testing.T) (first, second, third *Subscription, conn *fakeConnection) {
	h, f, _ := newFake(t, Options{})
	first = h.Subscribe(Topic{Channel: "c"})
	second = h.Subscribe(Topic{Channel: "c"})
	third = h.Subscribe(Topic{Channel: "c"})
	r := f.next(t, "subscribe")
	require.Equal(t, []string{"c"}, r.channels)
	r.accept()
	for _, s := range []*Subscription{first, second, third} {
		require.True(t, has(s))
	}
	return first, second, third, r.conn
}

// give gives a subscriber a permit without a message.
func give(s *Subscription) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.permit(0)
}

func TestSubscriberGetsItsFirstPermitFromTheConfirmation(t *testing.T) {
	h, f, _ := newFake(t, Options{})
	s := h.Subscribe(Topic{Channel: "c"})
	r := f.next(t, "subscribe")
	require.False(t, has(s), "a permit before the server confirmed")
	r.accept()
	require.True(t, has(s))
	require.False(t, has(s), "two permits for one confirmation")
}

func TestJoinerOfAConfirmedChannelGetsAPermitAtOnce(t *testing.T) {
	first, _, _, _ := confirmedTrio(t)
	joiner := first.hub.Subscribe(Topic{Channel: "c"})
	require.True(t, has(joiner))
	require.False(t, has(first))
}

func TestMessage0WakesOneSubscriberInTurn(t *testing.T) {
	first, second, third, conn := confirmedTrio(t)
	for _, turn := range []*Subscription{first, second, third, first} {
		conn.publish("c", "0")
		require.Equal(t, []bool{turn == first, turn == second, turn == third},
			[]bool{has(first), has(second), has(third)})
	}
}

func TestMessage0SkipsSubscribersThatHaveAPermit(t *testing.T) {
	first, second, third, conn := confirmedTrio(t)
	give(first)
	conn.publish("c", "0")
	require.True(t, has(second))
	require.True(t, has(first))
	require.False(t, has(third))
}

func TestAnyOtherMessageWakesAll(t *testing.T) {
	first, second, third, conn := confirmedTrio(t)
	for _, payload := range []string{"1", "", "00", "unheard of"} {
		conn.publish("c", payload)
		require.Equal(t, []bool{true, true, true}, []bool{has(first), has(second), has(third)},
			"payload %q", payload)
	}
}

func TestLeaverPassesItsUnusedPermitOn(t *testing.T) {
	first, second, third, conn := confirmedTrio(t)
	conn.publish("c", "0") // for first
	first.Close()
	require.False(t, has(first), "the permit was passed on and kept")
	require.True(t, has(second))
	require.False(t, has(third))
}

func TestClosedHubSubscriptionsStayUsableAndSilent(t *testing.T) {
	first, second, _, conn := confirmedTrio(t)
	h := first.hub
	h.Close()
	h.Close()
	conn.publish("c", "1")
	require.False(t, has(first))
	late := h.Subscribe(Topic{Channel: "c"})
	require.False(t, has(late))
	give(second)
	second.Close() // passes its permit to first
	require.True(t, has(first))
	late.Close()
	require.False(t, has(late))
	<-conn.closed
}
