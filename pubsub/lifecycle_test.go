package pubsub

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// started returns the only subscriber of channel c, confirmed, with its permit
// used.
func started(t *testing.T, h *Hub, f *fakeServer) (*Subscription, *fakeConnection) {
	t.Helper()
	s := h.Subscribe("c")
	r := f.next(t, "subscribe")
	r.accept()
	take(t, s)
	return s, r.conn
}

// silent fails if the hub sends something within d.
func silent(t *testing.T, f *fakeServer, d time.Duration) {
	t.Helper()
	select {
	case r := <-f.requests:
		t.Fatalf("%s %v was sent", r.verb, r.channels)
	case <-time.After(d):
	}
}

// gone requires that the hub has no channel, link or goroutine left.
func gone(t *testing.T, h *Hub) {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Empty(t, h.channels)
	require.Empty(t, h.links)
	require.Empty(t, h.router.queue)
	require.False(t, h.router.running)
}

func TestChannelLingersThenItIsUnsubscribedAndTheConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{Linger: 3 * time.Second})
		s, conn := started(t, h, f)
		left := time.Now()
		s.Close()
		r := f.next(t, "unsubscribe")
		require.Equal(t, 3*time.Second, time.Since(left))
		require.Equal(t, []string{"c"}, r.channels)
		r.accept()
		<-conn.closed
		gone(t, h)
	})
}

func TestLingerDefaultsToOneSecondAndANegativeOneIsNone(t *testing.T) {
	for linger, want := range map[time.Duration]time.Duration{0: DefaultLinger, -1: 0} {
		synctest.Test(t, func(t *testing.T) {
			h, f, _ := newFake(t, Options{Linger: linger})
			s, _ := started(t, h, f)
			left := time.Now()
			s.Close()
			f.next(t, "unsubscribe").accept()
			require.Equal(t, want, time.Since(left))
		})
	}
}

func TestSubscriberDuringTheLingerReusesTheSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s, _ := started(t, h, f)
		for range 5 { // each cycle starts the linger anew
			s.Close()
			silent(t, f, 700*time.Millisecond)
			s = h.Subscribe("c")
			require.True(t, has(s), "a lingering channel is confirmed")
		}
		silent(t, f, 5*time.Second)
		left := time.Now()
		s.Close()
		f.next(t, "unsubscribe").accept()
		require.Equal(t, DefaultLinger, time.Since(left))
	})
}

func TestEachChannelLingersOnItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		a, _ := started(t, h, f)
		b := h.Subscribe("d")
		f.next(t, "subscribe").accept()
		take(t, b)

		a.Close()
		silent(t, f, 400*time.Millisecond)
		b.Close()
		r := f.next(t, "unsubscribe")
		require.Equal(t, []string{"c"}, r.channels)
		r.accept()
		r = f.next(t, "unsubscribe")
		require.Equal(t, []string{"d"}, r.channels)
		r.accept()
		gone(t, h)
	})
}

func TestChannelThatIsUsedAgainDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		first, _ := started(t, h, f)
		second := h.Subscribe("d")
		f.next(t, "subscribe").accept()
		first.Close()
		second.Close()
		left := time.Now()
		silent(t, f, 600*time.Millisecond)
		h.Subscribe("c").Close()

		r := f.next(t, "unsubscribe")
		require.Equal(t, []string{"d"}, r.channels)
		require.Equal(t, DefaultLinger, time.Since(left))
		r.accept()
		f.next(t, "unsubscribe").accept()
		require.Equal(t, DefaultLinger+600*time.Millisecond, time.Since(left))
	})
}

func TestSubscriberDuringAnUnsubscribeInFlightIsSubscribedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s, _ := started(t, h, f)
		s.Close()
		unsubscribe := f.next(t, "unsubscribe")
		s = h.Subscribe("c")
		require.False(t, has(s), "a permit while the server is forgetting us")
		unsubscribe.accept()
		f.next(t, "subscribe").accept()
		take(t, s)
		require.Equal(t, 1, f.dials)
	})
}

func TestSubscriberThatCameAndWentDuringAnUnsubscribeInFlightLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s, conn := started(t, h, f)
		s.Close()
		unsubscribe := f.next(t, "unsubscribe")
		h.Subscribe("c").Close()
		unsubscribe.accept()
		<-conn.closed
		gone(t, h)
	})
}

func TestLeaverDuringASubscribeInFlightLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s := h.Subscribe("c")
		subscribe := f.next(t, "subscribe")
		s.Close()
		subscribe.accept()
		f.next(t, "unsubscribe").accept()
		<-subscribe.conn.closed
		gone(t, h)
	})
}

func TestLeaverBeforeTheSubscribeSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		_, conn := started(t, h, f)
		busy := h.Subscribe("d")
		subscribe := f.next(t, "subscribe") // the link waits for this reply
		early := h.Subscribe("e")
		synctest.Wait() // the router has put e on the link
		early.Close()
		subscribe.accept()
		take(t, busy)
		silent(t, f, time.Minute)
		require.NotContains(t, h.channels, "e")
		select {
		case <-conn.closed:
			t.Fatal("the connection of the other channels was closed")
		default:
		}
	})
}

func TestLostConnectionIsReplacedAndWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s, conn := started(t, h, f)
		other := h.Subscribe("c")
		take(t, other)
		lingering := h.Subscribe("l")
		f.next(t, "subscribe").accept()
		lingering.Close()

		conn.breakOff()
		r := f.next(t, "subscribe")
		require.Equal(t, []string{"c"}, r.channels, "what nobody waits for is not subscribed again")
		require.NotSame(t, conn, r.conn)
		require.False(t, has(s))
		r.accept()
		take(t, s)
		take(t, other)
		<-conn.closed

		// A word from the old connection does not count.
		conn.hooks.OnSubscription(rueidis.PubSubSubscription{Kind: "unsubscribe", Channel: "c"})
		silent(t, f, time.Minute)
		require.Equal(t, 2, f.dials)
	})
}

func TestConnectionLostWhileAskingOrLeavingIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s := h.Subscribe("c")
		f.next(t, "subscribe").conn.breakOff()
		f.next(t, "subscribe").accept()
		take(t, s)

		s.Close()
		unsubscribe := f.next(t, "unsubscribe")
		s = h.Subscribe("c")
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
		<-conn.closed // its last channel has moved away
	})
}

func TestUnexpectedUnsubscribeBeforeTheReplyIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s := h.Subscribe("c")
		r := f.next(t, "subscribe")
		for _, kind := range []string{"subscribe", "unsubscribe"} {
			r.conn.hooks.OnSubscription(rueidis.PubSubSubscription{Kind: kind, Channel: "c"})
		}
		r.answer <- answer{replies: []error{nil}}
		take(t, s)
		f.next(t, "subscribe").accept()
		take(t, s)
	})
}

func TestMovedIsFollowedAtOnceAndThenWithDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{Sharded: true})
		s := h.Subscribe("c")
		start := time.Now()
		f.next(t, "subscribe").refuse("MOVED 42 10.0.0.1:6379")
		r := f.next(t, "subscribe")
		require.Zero(t, time.Since(start))
		require.Equal(t, []bool{false, true}, f.refresh)
		for range 9 {
			r.refuse("MOVED 42 10.0.0.1:6379")
			r = f.next(t, "subscribe")
		}
		require.Greater(t, time.Since(start), time.Second)
		require.NoError(t, s.Err(), "a redirection is no refusal")
		r.accept()
		take(t, s)
	})
}

func TestServerThatCannotTellIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, lines := newFake(t, Options{})
		s := h.Subscribe("c")
		for _, reply := range []string{"CLUSTERDOWN The cluster is down", "LOADING", "TRYAGAIN", "BUSY", "MASTERDOWN"} {
			f.next(t, "subscribe").refuse(reply)
		}
		f.next(t, "subscribe").accept()
		take(t, s)
		require.NoError(t, s.Err())
		require.Empty(t, lines.with("refuses"))
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
		s = h.Subscribe("c")
		f.set(func() { f.refresh = nil })
		r.refuse("MOVED 42 10.0.0.1:6379")
		f.next(t, "subscribe").accept()
		take(t, s)
		require.Equal(t, []bool{true}, f.refresh)
	})
}

func TestUnsubscribeThatIsRefusedEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s, conn := started(t, h, f)
		other := h.Subscribe("d")
		f.next(t, "subscribe").accept()
		take(t, other)
		s.Close()
		f.next(t, "unsubscribe").refuse("NOPERM")
		<-conn.closed
		r := f.next(t, "subscribe")
		require.Equal(t, []string{"d"}, r.channels)
		r.accept()
		take(t, other)
	})
}

func TestRefusedChannelIsLoggedOnceAndAskedSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const denied = "NOPERM this user has no permissions to access one of the channels used as arguments"
		h, f, lines := newFake(t, Options{})
		s := h.Subscribe("c")
		start := time.Now()
		for range 8 {
			f.next(t, "subscribe").refuse(denied)
		}
		require.Greater(t, time.Since(start), 45*time.Second)
		require.ErrorContains(t, s.Err(), `pubsub: channel "c": NOPERM`)
		require.False(t, has(s))
		require.Len(t, lines.with("refuses the channel"), 1)
		require.Len(t, lines.with("&channel-pattern"), 1)

		f.next(t, "subscribe").accept()
		take(t, s)
		require.NoError(t, s.Err())

		// A second refusal is news again.
		s.Close()
		f.next(t, "unsubscribe").accept()
		s = h.Subscribe("c")
		f.next(t, "subscribe").refuse(denied)
		synctest.Wait()
		require.Len(t, lines.with("refuses the channel"), 2)
		s.Close()
		require.NoError(t, s.Err())
		gone(t, h)
	})
}

func TestLeaverOfAChannelThatIsThenRefusedLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		s := h.Subscribe("c")
		r := f.next(t, "subscribe")
		s.Close()
		r.refuse("NOPERM")
		gone(t, h)
	})
}

func TestNodeThatIsDownIsDialledWithGrowingDelaysAndRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, lines := newFake(t, Options{})
		f.down = true
		subscriptions := make([]*Subscription, 100)
		for i := range subscriptions {
			subscriptions[i] = h.Subscribe(string(rune('a' + i)))
		}
		time.Sleep(time.Minute) // the bubble's clock: nothing is waited for
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
		require.Len(t, lines.with("no connection to the node"), 1)
		up := time.Now()
		f.next(t, "subscribe").accept()
		require.LessOrEqual(t, time.Since(up), longestDelay)
		synctest.Wait()
		require.Len(t, lines.with("connected to the node again"), 1)
		for _, s := range subscriptions {
			for !has(s) { // those that were placed too late for the first batch
				f.next(t, "subscribe").accept()
			}
		}
	})
}

func TestSubscriberOfANodeThatIsDownMayLeaveAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		f.down = true
		s := h.Subscribe("c")
		synctest.Wait()
		s.Close()
		gone(t, h)
	})
}

func TestRouteThatFailsIsAskedAgainAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, lines := newFake(t, Options{})
		f.routing = errors.New("no master is known")
		s := h.Subscribe("c")
		time.Sleep(time.Minute) // the bubble's clock
		synctest.Wait()
		f.set(func() {
			require.Greater(t, len(f.refresh), 60)
			require.Less(t, len(f.refresh), 200)
			f.routing = nil
		})
		require.Len(t, lines.with("no master is known"), 1)
		f.next(t, "subscribe").accept()
		take(t, s)
	})
}

func TestCloseEndsEverythingInAnyPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phases := map[string]func(*Hub, *fakeServer){
			"routing":   func(h *Hub, f *fakeServer) { f.down = true; h.Subscribe("c") },
			"asking":    func(h *Hub, f *fakeServer) { h.Subscribe("c"); f.next(t, "subscribe") },
			"confirmed": func(h *Hub, f *fakeServer) { started(t, h, f) },
			"lingering": func(h *Hub, f *fakeServer) { s, _ := started(t, h, f); s.Close() },
			"leaving":   func(h *Hub, f *fakeServer) { s, _ := started(t, h, f); s.Close(); f.next(t, "unsubscribe") },
		}
		for name, reach := range phases {
			h, f, lines := newFake(t, Options{})
			reach(h, f)
			synctest.Wait()
			before := time.Now()
			h.Close()
			require.Zero(t, time.Since(before), name)
			gone(t, h)
			require.LessOrEqual(t, len(lines.lines), 1, name)
		}
	})
}

func TestRouteThatHangsIsGivenUpAndAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		hangs := true
		h.options.Route = func(ctx context.Context, channel string, refresh bool) (string, rueidis.Client, error) {
			if hangs {
				hangs = false
				<-ctx.Done()
				return "", nil, ctx.Err()
			}
			return f.route(ctx, channel, refresh)
		}
		start := time.Now()
		s := h.Subscribe("c")
		f.next(t, "subscribe").accept()
		take(t, s)
		require.InDelta(t, routeTimeout, time.Since(start), float64(firstDelay))
	})
}

func TestLeaverWhileItsChannelIsRoutedLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newFake(t, Options{})
		asked, proceed := make(chan struct{}), make(chan struct{})
		h.options.Route = func(ctx context.Context, channel string, refresh bool) (string, rueidis.Client, error) {
			asked <- struct{}{}
			<-proceed
			return f.route(ctx, channel, refresh)
		}
		first, second := h.Subscribe("c"), h.Subscribe("d")
		<-asked
		first.Close()
		second.Close()
		close(proceed)
		gone(t, h)
		require.Zero(t, f.dials)
	})
}

func TestNodeWithoutAClientIsAnOutage(t *testing.T) {
	_, err := dialRedis(nil, false, rueidis.PubSubHooks{})
	require.ErrorIs(t, err, errNoClient)
}
