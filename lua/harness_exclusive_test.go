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

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// attend has a client of this library listen, as it does before it registers waiters.
func attend(tb testing.TB, s *redistest.Server, client string) subscriber {
	tb.Helper()
	return listen(tb, s, "SUBSCRIBE", lockChannel, present, present+":"+client)
}

// listen subscribes one connection to channels.
func listen(tb testing.TB, s *redistest.Server, verb string, channels ...string) subscriber {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	require.NoError(tb, err)
	tb.Cleanup(func() { conn.Close() })
	require.NoError(tb, conn.SetDeadline(time.Now().Add(10*time.Second)))
	sub := subscriber{conn}
	kind := map[string]string{"SUBSCRIBE": "subscribe", "SSUBSCRIBE": "ssubscribe"}[verb]
	for i, channel := range channels {
		_, err = io.WriteString(sub, array(verb, channel))
		require.NoError(tb, err)
		sub.requireBytes(
			tb,
			fmt.Sprintf(
				"*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:%d\r\n",
				len(kind),
				kind,
				len(channel),
				channel,
				i+1,
			),
		)
	}
	return sub
}

// leave ends the connection, and returns when the server counts that many subscribers of the
// channel.
func (s subscriber) leave(tb testing.TB, server *redistest.Server, channel string, left int) {
	tb.Helper()
	require.NoError(tb, s.Close())
	require.Eventually(tb, func() bool {
		return server.DoStrings(tb, "PUBSUB", "NUMSUB", channel)[1] == strconv.Itoa(left)
	}, eventually, poll)
}

// requireGrant asserts the message that grants an owner of the client the lock, which was free
// before. It was released by me.
func (s subscriber) requireGrant(
	tb testing.TB,
	client, owner string,
	ticket int64,
	fence int64,
) {
	tb.Helper()
	s.requireGrantAfter(tb, client, owner, ticket, fence, lua.Streak{Count: 1})
}

// requireGrantAfter is requireGrant of a lock with a streak. Without a begin it began just now, or
// has none yet after the first hand-over.
func (s subscriber) requireGrantAfter(
	tb testing.TB,
	client, owner string,
	ticket int64,
	fence int64,
	streak lua.Streak,
) {
	tb.Helper()
	s.requireGrantBy(tb, me, client, owner, ticket, fence, streak)
}

// requireGrantBy is requireGrantAfter of a lock that was released by another owner.
func (s subscriber) requireGrantBy(
	tb testing.TB,
	by, client, owner string,
	ticket int64,
	fence int64,
	streak lua.Streak,
) {
	tb.Helper()
	local, sign := strings.HasPrefix(by, client), ""
	if local {
		sign = "+"
	}
	write := func(began int64) string {
		message := strings.Join(
			[]string{
				owner,
				sign + decimal(ticket),
				decimal(fence),
				decimal(int64(streak.Count)),
				decimal(began),
				lock,
			},
			" ",
		)
		return array("message", present+":"+client, message)
	}
	began, now := streak.Began, time.Now()
	want := write(began)
	if began == 0 && streak.Count > 1 {
		want = write(now.UnixMilli())
	}
	got := make([]byte, len(want))
	n, err := io.ReadFull(s, got)
	require.NoError(tb, err, "got %q", got[:n])
	grant, ok := lua.ParseGrant(
		strings.TrimSuffix(string(got[strings.Index(string(got), owner):]), "\r\n"),
	)
	require.True(tb, ok, "got %q", got)
	if began == 0 && streak.Count > 1 {
		began = grant.Streak.Began
		require.WithinDuration(tb, now, time.UnixMilli(began), 10*time.Second)
	}
	require.Equal(tb, write(began), string(got))
	require.Equal(
		tb,
		lua.Grant{
			Lock:   lock,
			Owner:  owner,
			Ticket: ticket,
			Local:  local,
			Fence:  fence,
			Streak: lua.Streak{Count: streak.Count, Began: began},
		},
		grant,
	)
}

// ago returns the clock of a server on this machine, d ago.
func ago(d time.Duration) int64 { return time.Now().Add(-d).UnixMilli() }

// requireAnnounced asserts the bytes of the announcement that the lock is free.
func (s subscriber) requireAnnounced(tb testing.TB) {
	tb.Helper()
	s.requireBytes(tb, unlocked)
}
