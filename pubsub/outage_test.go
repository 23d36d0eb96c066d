package pubsub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestLostConnectionIsReplacedAndWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s, conn := started(t, h, f)
		other := h.Subscribe(Topic{Channel: "c"})
		take(t, other)
		lingering := h.Subscribe(Topic{Channel: "l"})
		f.next(t, "subscribe").accept()
		lingering.Close()

		conn.breakOff()
		r := f.next(t, "subscribe")
		require.Equal(t, []string{"c"}, r.channels,
			"a channel without subscribers is not subscribed again")
		require.NotSame(t, conn, r.conn)
		require.False(t, has(s))
		r.accept()
		take(t, s)
		take(t, other)
		<-conn.closed

		// A message of the old connection does not count.
		conn.hooks.OnSubscription(rueidis.PubSubSubscription{Kind: "unsubscribe", Channel: "c"})
		silent(t, f, time.Minute)
		require.Equal(t, 2, f.dials)
	})
}

func TestRequestsOfALostConnectionAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s := h.Subscribe(Topic{Channel: "c"})
		f.next(t, "subscribe").conn.breakOff()
		f.next(t, "subscribe").accept()
		take(t, s)

		s.Close()
		unsubscribe := f.next(t, "unsubscribe")
		s = h.Subscribe(Topic{Channel: "c"})
		unsubscribe.conn.breakOff()
		f.next(t, "subscribe").accept()
		take(t, s)

		s.Close()
		f.next(t, "unsubscribe").conn.breakOff()
		gone(t, h)
	})
}

func TestUnexpectedUnsubscribeFindsTheNewNodeAndWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{Sharded: true})
		s, conn := started(t, h, f)
		synctest.Wait() // the link is asleep
		f.set(func() { f.node = "other"; f.refresh = nil })
		conn.hooks.OnSubscription(rueidis.PubSubSubscription{Kind: "sunsubscribe", Channel: "c"})
		r := f.next(t, "subscribe")
		require.NotSame(t, conn, r.conn)
		require.Equal(t, []bool{true}, f.refresh)
		r.accept()
		take(t, s)
		<-conn.closed // its last channel has moved
	})
}

func TestUnexpectedUnsubscribeBeforeTheReplyIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s := h.Subscribe(Topic{Channel: "c"})
		r := f.next(t, "subscribe")
		for _, kind := range []string{"subscribe", "unsubscribe"} {
			r.conn.hooks.OnSubscription(rueidis.PubSubSubscription{Kind: kind, Channel: "c"})
		}
		r.reply <- result{replies: []error{nil}}
		take(t, s)
		f.next(t, "subscribe").accept()
		take(t, s)
	})
}

func TestSlotThatMovedDuringAnUnsubscribeCountsAsUnsubscribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{Sharded: true})
		s, _ := started(t, h, f)
		s.Close()
		f.next(t, "unsubscribe").refuse("MOVED 42 10.0.0.1:6379")
		gone(t, h)

		s, _ = started(t, h, f)
		s.Close()
		r := f.next(t, "unsubscribe")
		s = h.Subscribe(Topic{Channel: "c"})
		f.set(func() { f.refresh = nil })
		r.refuse("MOVED 42 10.0.0.1:6379")
		f.next(t, "subscribe").accept()
		take(t, s)
		require.Equal(t, []bool{true}, f.refresh)
	})
}

func TestNodeThatIsDownIsDialledWithGrowingDelaysAndRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, lines := newFake(t, Options{})
		f.down = true
		subscriptions := make([]*Subscription, 100)
		for i := range subscriptions {
			subscriptions[i] = h.Subscribe(Topic{Channel: string(rune('a' + i))})
		}
		time.Sleep(time.Minute) // by the bubble's clock, so at once
		synctest.Wait()
		f.set(func() {
			require.Greater(t, f.dials, 60)
			require.Less(t, f.dials, 200, "each channel dials on its own")
			refreshes := 0
			for _, refresh := range f.refresh {
				if refresh {
					refreshes++
				}
			}
			require.LessOrEqual(t, refreshes, f.dials, "one refresh per round is enough")
			require.Positive(t, refreshes)
			f.down = false
		})
		require.Len(t, lines.With("no connection to the node"), 1)
		up := time.Now()
		f.next(t, "subscribe").accept()
		require.LessOrEqual(t, time.Since(up), time.Second)
		synctest.Wait()
		require.Len(t, lines.With("connected to the node again"), 1)
		for _, s := range subscriptions {
			for !has(s) { // of channels that came too late for the first batch
				f.next(t, "subscribe").accept()
			}
		}
	})
}
