package pubsub

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestLostConnectionIsReplacedAndWakesAll(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
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
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
		s := h.Subscribe(Topic{Channel: "c"})
		f.next(t, "subscribe").conn.breakOff()
		f.confirm(t, s)

		s.Close()
		unsubscribe := f.next(t, "unsubscribe")
		s = h.Subscribe(Topic{Channel: "c"})
		unsubscribe.conn.breakOff()
		f.confirm(t, s)

		s.Close()
		f.next(t, "unsubscribe").conn.breakOff()
		gone(t, h)
	})
}

func TestUnexpectedUnsubscribeFindsTheNewNodeAndWakes(t *testing.T) {
	inBubble(t, Options{Sharded: true}, func(t *testing.T, h *Hub, f *fakeServer) {
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
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
		s := h.Subscribe(Topic{Channel: "c"})
		r := f.next(t, "subscribe")
		for _, kind := range []string{"subscribe", "unsubscribe"} {
			r.conn.hooks.OnSubscription(rueidis.PubSubSubscription{Kind: kind, Channel: "c"})
		}
		r.reply <- result{replies: []error{nil}}
		take(t, s)
		f.confirm(t, s)
	})
}

func TestSlotThatMovedDuringAnUnsubscribeCountsAsUnsubscribed(t *testing.T) {
	inBubble(t, Options{Sharded: true}, func(t *testing.T, h *Hub, f *fakeServer) {
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
		f.confirm(t, s)
		require.Equal(t, []bool{true}, f.refresh)
	})
}

func TestNodeThatIsDownIsDialledWithGrowingDelaysAndRefresh(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
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
		require.Len(t, f.lines.With("cannot connect to the node"), 1)
		up := time.Now()
		f.next(t, "subscribe").accept()
		require.LessOrEqual(t, time.Since(up), time.Second)
		synctest.Wait()
		require.Len(t, f.lines.With("connected to the node again"), 1)
		for _, s := range subscriptions {
			for !has(s) { // of channels that came too late for the first batch
				f.next(t, "subscribe").accept()
			}
		}
	})
}

func TestRouteThatFailsIsRetriedAndLoggedOnce(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
		f.routing = errors.New("no master is known")
		s := h.Subscribe(Topic{Channel: "c"})
		time.Sleep(time.Minute) // by the bubble's clock
		synctest.Wait()
		f.set(func() {
			require.Greater(t, len(f.refresh), 60)
			require.Less(t, len(f.refresh), 200)
			f.routing = nil
		})
		require.Len(t, f.lines.With("no master is known"), 1)
		f.confirm(t, s)
	})
}

func TestRouteThatHangsIsGivenUpAndRetried(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
		hangs := true
		h.options.Route = func(
			ctx context.Context, channel string, refresh bool,
		) (string, rueidis.Client, error) {
			if hangs {
				hangs = false
				<-ctx.Done()
				return "", nil, ctx.Err()
			}
			return f.route(ctx, channel, refresh)
		}
		start := time.Now()
		s := h.Subscribe(Topic{Channel: "c"})
		f.confirm(t, s)
		require.InDelta(t, routeTimeout, time.Since(start), float64(10*time.Millisecond))
	})
}

func TestServerThatConfirmsNothingIsReportedOnce(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
		s := h.Subscribe(Topic{Channel: "one"})
		for range 3 {
			f.next(t, "subscribe").reply <- result{err: context.DeadlineExceeded}
		}
		f.confirm(t, s)
		require.Len(t, f.lines.With("did not confirm subscriptions in time"), 1)
	})
}

// rate is how many bytes per second the slow network carries, in each direction.
const rate = 60_000

// took returns how long the slow network takes for a request and its replies. Its server confirms
// each name by itself.
func took(r *request) time.Duration {
	bytes := 0
	for _, group := range r.groups {
		for _, name := range group {
			bytes += len(name) + len("*3\r\n$9\r\nsubscribe\r\n$100\r\n\r\n:1000\r\n")
		}
	}
	return time.Duration(bytes) * time.Second / rate
}

func TestManyChannelsAreSubscribedOverASlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const channels = 4000
		h, f := newFake(t, Options{Paired: func(channel string) []string {
			return []string{"holdfast_lock_waiter:" + channel + ":5d0b1c2e-66aa-4f2e-9f0d-0d0b6e2b3a11"}
		}})
		for i := range channels {
			h.Subscribe(Topic{Channel: fmt.Sprintf("redisson_lock__channel:{shop:order:%06d}", i)})
		}
		began, whole := time.Now(), time.Duration(0)
		for confirmed := 0; confirmed < channels; {
			r := f.next(t, "subscribe")
			takes := took(r)
			if takes > replyTimeout {
				time.Sleep(replyTimeout)
				r.reply <- result{err: context.DeadlineExceeded}
				require.Less(t, time.Since(began), time.Minute, "never confirmed")
				continue
			}
			time.Sleep(takes)
			whole += takes
			r.accept()
			confirmed += len(r.channels)
		}
		require.Greater(t, whole, replyTimeout, "the network is not slow enough for this test")
		require.Empty(t, f.lines.With(""))
	})
}
