package lua_test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// attend has a client of this library listen, as it does before it may have a place.
func attend(tb testing.TB, s *redistest.Server, client string) subscriber {
	tb.Helper()
	return listen(tb, s, "SUBSCRIBE", announcement.Channel, present, present+":"+client)
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
		sub.requireBytes(tb, fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:%d\r\n", len(kind), kind, len(channel), channel, i+1))
	}
	return sub
}

// leave ends the connection, and returns when the server knows how many of the channel's subscribers that leaves.
func (s subscriber) leave(tb testing.TB, server *redistest.Server, channel string, left int) {
	tb.Helper()
	require.NoError(tb, s.Close())
	require.Eventually(tb, func() bool {
		return server.DoStrings(tb, "PUBSUB", "NUMSUB", channel)[1] == strconv.Itoa(left)
	}, eventually, poll)
}

// requireGift asserts the message that says that an owner of the client was given the lock, which was free before.
func (s subscriber) requireGift(tb testing.TB, client, owner string, ticket lua.Ticket, fence int64) {
	tb.Helper()
	s.requireGiftAfter(tb, client, owner, ticket, fence, lua.Turns{Count: 1})
}

// requireGiftAfter is requireGift of a lock that has been passed on so often; without a time, from now on.
func (s subscriber) requireGiftAfter(tb testing.TB, client, owner string, ticket lua.Ticket, fence int64, turns lua.Turns) {
	tb.Helper()
	write := func(began int64) string {
		message := strings.Join([]string{owner, decimal(int64(ticket)), decimal(fence), decimal(int64(turns.Count)), decimal(began), lock}, " ")
		return array("message", present+":"+client, message)
	}
	began, now := turns.Began, time.Now()
	want := write(cmp.Or(began, now.UnixMilli()))
	got := make([]byte, len(want))
	n, err := io.ReadFull(s, got)
	require.NoError(tb, err, "got %q", got[:n])
	gift, ok := lua.ParseGift(strings.TrimSuffix(string(got[strings.Index(string(got), owner):]), "\r\n"))
	require.True(tb, ok, "got %q", got)
	if began == 0 {
		began = gift.Turns.Began
		require.WithinDuration(tb, now, time.UnixMilli(began), 10*time.Second)
	}
	require.Equal(tb, write(began), string(got))
	require.Equal(tb, lua.Gift{Lock: lock, Owner: owner, Ticket: ticket, Fence: fence, Turns: lua.Turns{Count: turns.Count, Began: began}}, gift)
}

// ago is the clock of a server on this machine, some time ago.
func ago(d time.Duration) int64 { return time.Now().Add(-d).UnixMilli() }

// requireAnnounced asserts the bytes of the announcement that the lock is free.
func (s subscriber) requireAnnounced(tb testing.TB) {
	tb.Helper()
	s.requireBytes(tb, unlocked)
}

// toAll lets everybody have the lock.
var toAll = lua.Passing{Others: true}

// toNext lets next have the lock, before or after others.
func toNext(first bool) lua.Passing {
	return lua.Passing{Others: true, Next: plain.Place(next, patience), NextFirst: first}
}

// release has me leave the lock.
func release(t *testing.T, c rueidis.CoreClient, e *lua.Exclusive, p lua.Passing) lua.Released {
	t.Helper()
	out, err := e.Release(t.Context(), c, me, 0, p)
	require.NoError(t, err)
	return out
}

// requireHeir asserts that the lock is that of somebody who waited for it, for its own lease.
func requireHeir(t *testing.T, s *redistest.Server, owner string) {
	t.Helper()
	require.Equal(t, map[string]string{owner: "1"}, s.DoMap(t, "HGETALL", lock))
	left := s.DoInt(t, "PTTL", lock)
	require.LessOrEqual(t, left, patience.Milliseconds())
	require.Greater(t, left, patience.Milliseconds()-5000)
}

// requireEmpty asserts that no key is left.
func requireEmpty(t *testing.T, s *redistest.Server) {
	t.Helper()
	require.Empty(t, s.DoStrings(t, "KEYS", "*"))
}

// everything is all that a server has of the lock, but for the times when it ends.
func everything(t *testing.T, s *redistest.Server) []any {
	t.Helper()
	return []any{s.DoMap(t, "HGETALL", lock), s.Do(t, "ZRANGE", waiters, "0", "-1", "WITHSCORES"),
		s.Do(t, "GET", counter), s.DoInt(t, "DBSIZE")}
}

// What goes with the lock called lock when it is handed over.
const (
	waiters = "holdfast_lock_waiters:{order:42}"
	present = "holdfast_lock_present:{order:42}"
)

// Clients, and owners of theirs, which wait for a lock that me has.
const (
	near    = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11" // the client of me
	next    = near + ":2"
	far     = "90a4cbd5-6c57-4b54-a6c4-3f1f40e0b3de"
	older   = far + ":1"
	farther = "c2d7b5a0-1b43-4d8e-9a57-60f0c9a1e77d"
	newer   = farther + ":4"
)

// patience is the lease of those who wait.
const patience = 7 * time.Second

// The lock in both kinds.
var (
	plain  = lua.NewExclusive(lock, false)
	fenced = lua.NewExclusive(lock, true)
)

// startHeld returns a server on which me has the lock, and a client.
func startHeld(t *testing.T) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	return s, c
}

// enlist has owners refused, each of which has a place then. It returns the ticket of the last.
func enlist(t *testing.T, c rueidis.CoreClient, e *lua.Exclusive, owners ...string) (ticket lua.Ticket) {
	t.Helper()
	for _, owner := range owners {
		fence, got, holder, err := e.Acquire(t.Context(), c, owner, patience, e.Place(owner, patience))
		require.NoError(t, err)
		require.NotNil(t, holder)
		require.Zero(t, fence)
		require.Greater(t, got, ticket)
		ticket = got
	}
	return ticket
}

// places are those who wait, first come first.
func places(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	return s.DoStrings(t, "ZRANGE", waiters, "0", "-1")
}

// ticketOf is the ticket of a place, as Redis has it.
func ticketOf(t *testing.T, s *redistest.Server, place string) string {
	t.Helper()
	return s.DoString(t, "ZSCORE", waiters, place)
}
