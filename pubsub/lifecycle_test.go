package pubsub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// started returns the only subscriber of channel c, which is confirmed and has used its permit.
func started(t *testing.T, h *Hub, f *fakeServer) (*Subscription, *fakeConnection) {
	t.Helper()
	s := h.Subscribe(Topic{Channel: "c"})
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

func TestChannelLingersBeforeItIsUnsubscribedAndTheConnectionEnds(t *testing.T) {
	for linger, want := range map[time.Duration]time.Duration{
		3 * time.Second: 3 * time.Second, 0: defaultLinger, -1: 0,
	} {
		inBubble(t, Options{linger: linger}, func(t *testing.T, h *Hub, f *fakeServer) {
			s, conn := started(t, h, f)
			left := time.Now()
			s.Close()
			r := f.next(t, "unsubscribe")
			require.Equal(t, want, time.Since(left))
			require.Equal(t, []string{"c"}, r.channels)
			r.accept()
			<-conn.closed
			gone(t, h)
		})
	}
}

func TestReusedChannelDoesNotDelayTheOthers(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
		first, _ := started(t, h, f)
		second := h.Subscribe(Topic{Channel: "d"})
		f.next(t, "subscribe").accept()
		first.Close()
		second.Close()
		left := time.Now()
		silent(t, f, 600*time.Millisecond)
		again := h.Subscribe(Topic{Channel: "c"})
		require.True(t, has(again), "a lingering channel is confirmed")
		again.Close()

		r := f.next(t, "unsubscribe")
		require.Equal(t, []string{"d"}, r.channels)
		require.Equal(t, defaultLinger, time.Since(left))
		r.accept()
		f.next(t, "unsubscribe").accept()
		require.Equal(t, defaultLinger+600*time.Millisecond, time.Since(left))
	})
}

func TestLeaverBeforeTheSubscribeSendsNothing(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
		_, conn := started(t, h, f)
		busy := h.Subscribe(Topic{Channel: "d"})
		subscribe := f.next(t, "subscribe") // the link waits for this reply
		early := h.Subscribe(Topic{Channel: "e"})
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

func TestCloseEndsEverythingInAnyPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phases := map[string]func(*Hub, *fakeServer){
			"routing": func(h *Hub, f *fakeServer) { f.down = true; h.Subscribe(Topic{Channel: "c"}) },
			"asking": func(h *Hub, f *fakeServer) {
				h.Subscribe(Topic{Channel: "c"})
				f.next(t, "subscribe")
			},
			"confirmed": func(h *Hub, f *fakeServer) { started(t, h, f) },
			"lingering": func(h *Hub, f *fakeServer) { s, _ := started(t, h, f); s.Close() },
			"leaving": func(h *Hub, f *fakeServer) {
				s, _ := started(t, h, f)
				s.Close()
				f.next(t, "unsubscribe")
			},
		}
		for name, reach := range phases {
			h, f := newFake(t, Options{})
			reach(h, f)
			synctest.Wait()
			before := time.Now()
			h.Close()
			require.Zero(t, time.Since(before), name)
			gone(t, h)
			require.LessOrEqual(t, len(f.lines.With("")), 1, name)
		}
	})
}

func TestReplyThatArrivesDuringCloseStartsNothing(t *testing.T) {
	inBubble(t, Options{Sharded: true}, func(t *testing.T, h *Hub, f *fakeServer) {
		s, _ := started(t, h, f)
		s.Close()
		f.next(t, "unsubscribe")
		h.Subscribe(Topic{Channel: "c"})
		h.mu.Lock()
		c := h.channels["c"]
		h.mu.Unlock()
		h.Close()
		h.mu.Lock()
		h.requeue(c, true, 0) // the reply was MOVED
		h.mu.Unlock()
		gone(t, h)
	})
}
