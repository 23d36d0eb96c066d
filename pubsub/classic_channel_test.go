package pubsub

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
)

func classicOf(channel string) []string { return []string{channel, channel + ":mark"} }

// newWithClassic returns a hub that also listens on classic channels.
func newWithClassic(t testing.TB) (*Hub, *fakeServer, *logtest.Lines) {
	return newFake(t, Options{Sharded: true, Classic: classicOf, Paired: pair})
}

func TestClassicChannelsAreSubscribedFirstAndWakeWithTheirChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, lines := newWithClassic(t)
		s := h.Subscribe(Topic{Channel: "c"})
		r := f.next(t, "subscribe")
		require.Equal(t, [][]string{classicOf("c")}, r.classic)
		require.Equal(t, [][]string{group("c")}, r.groups)
		r.confirm("", r.classic)
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
		require.Empty(t, lines.With(""))
	})
}

func TestChannelIsSubscribedWithoutClassicChannelsThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, lines := newWithClassic(t)
		for range 2 {
			s := h.Subscribe(Topic{Channel: "c"})
			f.next(t, "subscribe").refuseClassic("NOPERM no channel for you")
			take(t, s)
			require.True(t, s.Paired())
			s.Close()
			r := f.next(t, "unsubscribe")
			require.Empty(t, r.classic, "they are not subscribed")
			r.accept()
			gone(t, h)
		}
		require.Len(t, lines.With(""), 1)
		require.Contains(t, lines.With("")[0], "&c:mark")
	})
}

// A channel that leaves a connection must not leave its classic channels behind: each lock that
// was ever waited for would stay subscribed on the node that had it.
func TestClassicChannelsAreUnsubscribedWhereTheirChannelWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := newWithClassic(t)
		stays, conn := started(t, h, f)
		moves := h.Subscribe(Topic{Channel: "d"})
		r := f.next(t, "subscribe")
		f.set(func() { f.node = "other" })
		r.refuseOthers("MOVED 42 10.0.0.1:6379")

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

// nothing asserts that a subscription has no permit.
func nothing(t testing.TB, s *Subscription) {
	t.Helper()
	synctest.Wait()
	require.False(t, has(s), "a permit for nothing")
}
