package lua_test

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// subscriber reads the bytes that a server sends to one subscribed connection.
type subscriber struct{ net.Conn }

// subscribe returns when the server has confirmed the subscription. The verb is SUBSCRIBE or
// SSUBSCRIBE.
func subscribe(tb testing.TB, s *redistest.Server, verb, channel string) subscriber {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	require.NoError(tb, err)
	tb.Cleanup(func() { conn.Close() })
	require.NoError(tb, conn.SetDeadline(time.Now().Add(10*time.Second)))
	sub := subscriber{conn}
	_, err = io.WriteString(sub, array(verb, channel))
	require.NoError(tb, err)
	kind := map[string]string{"SUBSCRIBE": "subscribe", "SSUBSCRIBE": "ssubscribe"}[verb]
	sub.requireBytes(
		tb,
		fmt.Sprintf(
			"*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:1\r\n",
			len(kind),
			kind,
			len(channel),
			channel,
		),
	)
	return sub
}

// requireNothing asserts that no message came: a server replies to PING after all that it sent
// before.
func (s subscriber) requireNothing(tb testing.TB) {
	tb.Helper()
	_, err := io.WriteString(s, array("PING"))
	require.NoError(tb, err)
	s.requireBytes(tb, array("pong", ""))
}

// requireBytes asserts the next bytes on the connection.
func (s subscriber) requireBytes(tb testing.TB, want string) {
	tb.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(s, got)
	require.NoError(tb, err, "got %q", got[:n])
	require.Equal(tb, want, string(got))
}

// array writes texts as a RESP2 array of bulk strings.
func array(texts ...string) string {
	encoded := fmt.Sprintf("*%d\r\n", len(texts))
	for _, text := range texts {
		encoded += fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
	}
	return encoded
}

// message reads the next message on a channel, a number of four digits.
func (s subscriber) message(tb testing.TB, channel string) int {
	tb.Helper()
	s.requireBytes(tb, strings.TrimSuffix(array("message", channel, "1999"), "1999\r\n"))
	digits := make([]byte, 6)
	_, err := io.ReadFull(s, digits)
	require.NoError(tb, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(digits)))
	require.NoError(tb, err)
	return n
}

// endClassic ends the connection of a client that listens on the classic channel only, and returns
// when the server does not count it any more.
func endClassic(t *testing.T, sub subscriber, s *redistest.Server, channel string) {
	t.Helper()
	require.NoError(t, sub.Close())
	require.Eventually(t, func() bool {
		heard := s.DoStrings(t, append([]string{"PUBSUB", "NUMSUB"},
			lua.ClassicChannels(channel)...)...)
		return heard[1] == heard[3]
	}, eventually, poll)
}
