package pubsub

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMessage0WakesOneSubscriberOfEachTopic(t *testing.T) {
	h, f, _ := newFake(t, Options{})
	a1 := h.Subscribe(Topic{Channel: "c", Name: "a"})
	a2 := h.Subscribe(Topic{Channel: "c", Name: "a"})
	b1 := h.Subscribe(Topic{Channel: "c", Name: "b"})
	b2 := h.Subscribe(Topic{Channel: "c", Name: "b"})
	r := f.next(t, "subscribe")
	r.accept()
	for _, s := range []*Subscription{a1, a2, b1, b2} {
		require.True(t, has(s))
	}
	r.conn.publish("c", "0")
	require.Equal(t, []bool{true, false, true, false}, []bool{has(a1), has(a2), has(b1), has(b2)})
	r.conn.publish("c", "0")
	require.Equal(t, []bool{false, true, false, true}, []bool{has(a1), has(a2), has(b1), has(b2)})
}

func TestPermitIsPassedOnWithinItsTopic(t *testing.T) {
	h, f, _ := newFake(t, Options{})
	first := h.Subscribe(Topic{Channel: "c", Name: "a"})
	stranger := h.Subscribe(Topic{Channel: "c", Name: "b"})
	second := h.Subscribe(Topic{Channel: "c", Name: "a"})
	f.next(t, "subscribe").accept()
	require.True(t, has(stranger))
	require.True(t, has(second))
	first.Close() // has the permit of the confirmation
	require.False(t, has(stranger))
	require.True(t, has(second))
}
