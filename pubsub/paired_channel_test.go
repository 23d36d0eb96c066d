package pubsub

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

const noPermission = "NOPERM No permissions to access a channel"

// pair names two paired channels for every channel.
func pair(channel string) []string { return []string{channel + ":present", channel + ":direct"} }

// group returns a channel and its paired channels.
func group(channel string) []string { return append([]string{channel}, pair(channel)...) }

func TestChannelAndPairedChannelsShareOneCommand(t *testing.T) {
	inBubble(t, Options{Paired: pair}, func(t *testing.T, h *Hub, f *fakeServer) {
		c, d := h.Subscribe(Topic{Channel: "c"}), h.Subscribe(Topic{Channel: "d"})
		var groups [][]string
		for len(groups) < 2 {
			r := f.next(t, "subscribe")
			groups = append(groups, r.groups...)
			r.accept()
		}
		require.ElementsMatch(t, [][]string{group("c"), group("d")}, groups)
		take(t, c)
		take(t, d)

		c.Close()
		r := f.next(t, "unsubscribe", group("c"))
		c = h.Subscribe(Topic{Channel: "c"})
		r.accept()
		r = f.next(t, "subscribe", group("c")) // a subscriber came meanwhile
		r.accept()
		take(t, c)

		d.Close()
		r.conn.breakOff()
		r = f.next(t, "subscribe", group("c")) // after the connection was lost
		r.accept()
		take(t, c)
		c.Close()
		f.next(t, "unsubscribe").accept()
		gone(t, h)
		require.Empty(t, h.paired)
	})
}

func TestChannelWhosePairedChannelsAreRefusedWorksWithoutThem(t *testing.T) {
	inBubble(t, Options{Paired: pair}, func(t *testing.T, h *Hub, f *fakeServer) {
		s := h.Subscribe(Topic{Channel: "c"})
		start := time.Now()
		f.next(t, "subscribe").refuse(noPermission)
		r := f.next(t, "subscribe", []string{"c"})
		require.Zero(t, time.Since(start), "it is requested at once")
		require.Empty(t, f.lines.With("refuses"), "the channel itself may be allowed")
		r.accept()
		take(t, s)
		require.False(t, s.Paired())
		r.conn.publish("c", "0")
		take(t, s)

		// The server keeps that reply for this connection.
		unsubscribed := func() {
			s.Close()
			r := f.next(t, "unsubscribe", []string{"c"})
			s = h.Subscribe(Topic{Channel: "c"})
			r.accept()
		}
		unsubscribed()
		r = f.next(t, "subscribe", []string{"c"})
		r.accept()
		take(t, s)

		// The next connection may be accepted. While it is not, nothing is logged.
		r.conn.breakOff()
		r = f.next(t, "subscribe", group("c"))
		r.refuse(noPermission)
		f.confirm(t, s)
		told := f.lines.With(
			"rejects the paired channels of the channel, so holdfast subscribes without them")
		require.Len(t, told, 1)
		require.Contains(t, told[0], "&c:present &c:direct")
		require.Contains(t, told[0], "level=WARN")
		require.Contains(t, told[0], "NOPERM")

		// A subscriber that comes after the channel was dropped gets it as well.
		s.Close()
		f.next(t, "unsubscribe").accept()
		gone(t, h)
		s = h.Subscribe(Topic{Channel: "c"})
		f.confirm(t, s)
		require.True(t, s.Paired())

		// The paired channels were accepted once, so another refusal is logged.
		s.Close()
		f.next(t, "unsubscribe").accept()
		s = h.Subscribe(Topic{Channel: "c"})
		f.next(t, "subscribe").refuse(noPermission)
		f.confirm(t, s)
		synctest.Wait()
		require.Len(t, f.lines.With("rejects the paired"), 2)
		require.Empty(t, f.lines.With("rejects the channel"))
	})
}

func TestSlotThatMovesTakesThePairedChannelsAlong(t *testing.T) {
	inBubble(t, Options{Paired: pair, Sharded: true}, func(t *testing.T, h *Hub, f *fakeServer) {
		s, conn := started(t, h, f)
		// The server reports each channel on its own.
		for _, name := range []string{"c:direct", "c", "c:present"} {
			conn.hooks.OnSubscription(
				rueidis.PubSubSubscription{Kind: "sunsubscribe", Channel: name})
		}
		r := f.next(t, "subscribe", group("c"))
		require.False(t, s.Paired())
		r.accept()
		take(t, s)
		require.True(t, s.Paired())
		silent(t, f, time.Minute)
	})
}

// overheard collects the calls of OnDirect.
type overheard struct{ calls []string }

func (o *overheard) note(channel, message string) { o.calls = append(o.calls, channel+" "+message) }

// all returns the calls since it was last called.
func (o *overheard) all() []string {
	calls := o.calls
	o.calls = nil
	return calls
}

func TestOnDirectMayUseTheHub(t *testing.T) {
	var h *Hub
	var other *Subscription
	h, f := newFake(t, Options{Paired: pair, OnDirect: func(channel, _ string) {
		s := h.Resume(Topic{Channel: "c"})
		s.Close()
		other = h.Subscribe(Topic{Channel: channel + ":other"})
	}})
	_, conn := started(t, h, f)
	conn.publish("c:direct", "yours") // would not return if mu were locked
	f.confirm(t, other)
}

func TestMessageOnAPairedChannelGoesToOnDirectUntilTheChannelIsGone(t *testing.T) {
	heard := new(overheard)
	o := Options{Paired: pair, OnDirect: heard.note}
	inBubble(t, o, func(t *testing.T, h *Hub, f *fakeServer) {
		s, conn := started(t, h, f)
		conn.publish("c:direct", "1")
		conn.publish("c:present", "0")
		require.Equal(t, []string{"c:direct 1", "c:present 0"}, heard.all())
		require.False(t, has(s), "it is no reason to ask")
		conn.publish("c", "0")
		conn.publish("d:direct", "yours")
		require.Empty(t, heard.all(), "messages of the channel, and of an unknown paired channel")
		require.True(t, has(s))

		s.Close()
		conn.publish("c:direct", "lingering")
		r := f.next(t, "unsubscribe")
		conn.publish("c:direct", "leaving")
		require.Equal(t, []string{"c:direct lingering", "c:direct leaving"}, heard.all())
		r.accept()
		gone(t, h)
		conn.publish("c:direct", "gone")
		require.Empty(t, heard.all())

		s, conn = started(t, h, f)
		f.set(func() { f.down = true })
		conn.breakOff()
		synctest.Wait()
		conn.publish("c:direct", "from the connection that was lost")
		require.Len(t, heard.all(), 1)
		f.set(func() { f.down = false })
		f.confirm(t, s)
	})
}

func TestDirectMessagesAreHeardUntilTheHubIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, proceed := make(chan struct{}), make(chan struct{})
		var calls []string
		h, f := newFake(t, Options{Paired: pair, OnDirect: func(_, message string) {
			entered <- struct{}{}
			<-proceed
			calls = append(calls, message)
		}})
		_, conn := started(t, h, f)
		go conn.publish("c:direct", "before")
		<-entered
		closed := make(chan struct{})
		go func() { h.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("Close returned before OnDirect had")
		default:
		}
		close(proceed)
		<-closed
		require.Equal(t, []string{"before"}, calls)
		conn.publish("c:direct", "after") // would block
	})
	synctest.Test(t, func(t *testing.T) {
		heard := new(overheard)
		h, f := newFake(t, Options{Paired: pair, OnDirect: heard.note})
		_, conn := started(t, h, f)
		conn.farewell = func() { conn.publish("c:direct", "during") }
		h.Close()
		require.Equal(t, []string{"c:direct during"}, heard.all())
	})
}

func TestResumeFindsOnlyAConfirmedChannelWithItsPairedChannels(t *testing.T) {
	inBubble(t, Options{Paired: pair}, func(t *testing.T, h *Hub, f *fakeServer) {
		resumes := func() bool {
			h.mu.Lock()
			before := len(h.channels)
			h.mu.Unlock()
			s := h.Resume(Topic{Channel: "c"})
			if s == nil {
				h.mu.Lock()
				defer h.mu.Unlock()
				require.Len(t, h.channels, before)
				return false
			}
			require.False(t, has(s), "it has not tried yet")
			require.True(t, s.Paired())
			s.Close()
			return true
		}
		require.False(t, resumes(), "the channel is unknown")
		silent(t, f, time.Minute)
		f.set(func() { f.down = true })
		s := h.Subscribe(Topic{Channel: "c"})
		synctest.Wait()
		require.False(t, resumes(), "it is being routed")
		f.set(func() { f.down = false })
		r := f.next(t, "subscribe")
		require.False(t, resumes(), "it has not been confirmed")
		r.accept()
		take(t, s)
		require.True(t, resumes(), "others wait")
		s.Close()
		require.True(t, resumes(), "it lingers")
		r = f.next(t, "unsubscribe")
		require.False(t, resumes(), "it is being unsubscribed")
		s = h.Subscribe(Topic{Channel: "c"})
		r.accept()
		f.next(t, "subscribe").refuse(noPermission)
		f.confirm(t, s)
		require.False(t, resumes(), "it has no paired channels")
		r.conn.breakOff()
		f.confirm(t, s)
		require.True(t, resumes())
		h.Close()
		require.False(t, resumes(), "the hub is closed")
	})
}

func classicOf(channel string) []string { return []string{channel, channel + ":mark"} }

// andClassic is for a hub that also listens on classic channels.
var andClassic = Options{Sharded: true, Classic: classicOf, Paired: pair}

func TestClassicChannelsAreSubscribedFirstAndWakeWithTheirChannel(t *testing.T) {
	inBubble(t, andClassic, func(t *testing.T, h *Hub, f *fakeServer) {
		s := h.Subscribe(Topic{Channel: "c"})
		r := f.next(t, "subscribe")
		require.Equal(t, [][]string{classicOf("c")}, r.classic)
		require.Equal(t, [][]string{group("c")}, r.groups)
		r.each("", r.classic, "")
		nothing(t, s) // it would ask twice
		r.accept()
		take(t, s)
		nothing(t, s)
		require.True(t, s.Paired())

		r.conn.publish("c", "0") // a connection does not say which kind it is
		take(t, s)
		s.Close()
		r = f.next(t, "unsubscribe")
		require.Equal(t, [][]string{classicOf("c")}, r.classic)
		require.Equal(t, [][]string{group("c")}, r.groups)
		r.accept()
		gone(t, h)
		require.Empty(t, f.lines.With(""))
	})
}

func TestChannelIsSubscribedWithoutClassicChannelsThatAreRefused(t *testing.T) {
	inBubble(t, andClassic, func(t *testing.T, h *Hub, f *fakeServer) {
		for range 2 {
			s := h.Subscribe(Topic{Channel: "c"})
			f.next(t, "subscribe").answer("NOPERM no channel for you", "")
			take(t, s)
			require.True(t, s.Paired())
			s.Close()
			r := f.next(t, "unsubscribe")
			require.Empty(t, r.classic, "they are not subscribed")
			r.accept()
			gone(t, h)
		}
		require.Len(t, f.lines.With(""), 1)
		require.Contains(t, f.lines.With("")[0], "&c:mark")
	})
}

// A channel that leaves a connection must not leave its classic channels behind: each lock that
// was ever waited for would stay subscribed on the node that had it.
func TestClassicChannelsAreUnsubscribedWhereTheirChannelWas(t *testing.T) {
	inBubble(t, andClassic, func(t *testing.T, h *Hub, f *fakeServer) {
		stays, conn := started(t, h, f)
		moves := h.Subscribe(Topic{Channel: "d"})
		r := f.next(t, "subscribe")
		f.set(func() { f.node = "other" })
		r.answer("", "MOVED 42 10.0.0.1:6379")

		for range 2 { // in either order
			switch r := <-f.requests; r.verb {
			case "unsubscribe":
				require.Same(t, conn, r.conn)
				require.Equal(t, [][]string{classicOf("d")}, r.classic)
				require.Empty(t, r.groups)
				r.accept()
			case "subscribe":
				require.NotSame(t, conn, r.conn)
				require.Equal(t, [][]string{classicOf("d")}, r.classic)
				r.accept()
			}
		}
		take(t, moves)
		conn.publish("c", "0")
		take(t, stays)
	})
}

// When many slots move, many channels leave a connection at once. Each exchange has replyTimeout,
// so their classic channels take several of them, as all others do.
func TestClassicChannelsThatAreLeftBehindTakeExchangesOfLimitedSize(t *testing.T) {
	inBubble(t, andClassic, func(t *testing.T, h *Hub, f *fakeServer) {
		_, conn := started(t, h, f)
		const moving = 1000
		name := func(i int) string { return fmt.Sprint(strings.Repeat("x", 100), i) }
		for i := range moving {
			h.Subscribe(Topic{Channel: name(i)})
		}
		for asked := 0; asked < moving; {
			r := f.next(t, "subscribe")
			asked += len(r.groups)
			r.accept()
		}
		synctest.Wait()
		f.set(func() { f.node = "other" })
		for i := range moving {
			conn.hooks.OnSubscription(
				rueidis.PubSubSubscription{Kind: "sunsubscribe", Channel: name(i)})
		}
		for left := moving; left > 0; {
			r := <-f.requests
			if r.verb == "unsubscribe" {
				require.Less(t, len(fmt.Sprint(r.classic)), mostBytes+1000)
				left -= len(r.classic)
			}
			r.accept()
		}
	})
}

// nothing asserts that a subscription has no permit.
func nothing(t testing.TB, s *Subscription) {
	t.Helper()
	synctest.Wait()
	require.False(t, has(s), "a permit for nothing")
}
