package pubsub

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMovedIsFollowedAtOnceAndThenWithDelays(t *testing.T) {
	inBubble(t, Options{Sharded: true}, func(t *testing.T, h *Hub, f *fakeServer) {
		s := h.Subscribe(Topic{Channel: "c"})
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
		require.Empty(t, f.lines.With("refuses"), "a redirection is no refusal")
		r.accept()
		take(t, s)
	})
}

func TestTemporaryRefusalIsRetried(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
		s := h.Subscribe(Topic{Channel: "c"})
		for _, reply := range []string{
			"CLUSTERDOWN The cluster is down", "LOADING", "TRYAGAIN", "BUSY", "MASTERDOWN",
		} {
			f.next(t, "subscribe").refuse(reply)
		}
		f.confirm(t, s)
		require.Empty(t, f.lines.With("refuses"))
	})
}

func TestUnsubscribeThatIsRefusedEndsTheConnection(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, h *Hub, f *fakeServer) {
		s, conn := started(t, h, f)
		other := h.Subscribe(Topic{Channel: "d"})
		f.confirm(t, other)
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
		const denied = "NOPERM this user has no permissions to access one of the channels " +
			"used as arguments"
		h, f := newFake(t, Options{})
		s := h.Subscribe(Topic{Channel: "c"})
		f.next(t, "subscribe").refuse(denied)
		for _, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
			longest := time.Duration(seconds) * time.Second
			last := time.Now()
			r := f.next(t, "subscribe")
			require.GreaterOrEqual(t, time.Since(last), longest/2)
			require.LessOrEqual(t, time.Since(last), longest)
			r.refuse(denied)
		}
		require.False(t, has(s))
		require.Len(t, f.lines.With("rejects the channel"), 1)
		require.Contains(t, f.lines.With("channel=c ")[0], "NOPERM")
		require.Len(t, f.lines.With("grant &pattern"), 1)

		f.confirm(t, s)

		// A second refusal is logged again.
		s.Close()
		f.next(t, "unsubscribe").accept()
		s = h.Subscribe(Topic{Channel: "c"})
		f.next(t, "subscribe").refuse(denied)
		synctest.Wait()
		require.Len(t, f.lines.With("rejects the channel"), 2)
		s.Close()
		gone(t, h)
	})
}

func TestAdviceNamesTheMissingRule(t *testing.T) {
	for reply, remedy := range map[string]string{
		"NOPERM User ann has no permissions to access the 'c' channel":      "&c",
		"NOPERM User ann has no permissions to run the 'subscribe' command": "+subscribe",
		"ERR unknown command 'SUBSCRIBE'":                                   "read the error",
	} {
		require.Contains(t, advice(errors.New(reply), []string{"c"}, false), remedy)
	}
	require.Contains(t, advice(errors.New("NOPERM 'ssubscribe'"), []string{"c"}, true),
		"+ssubscribe")
}
