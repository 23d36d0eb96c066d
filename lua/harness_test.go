package lua_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/lua"
)

const (
	lock = "order:42"
	// An owner of this library has a number of 19 digits, and other is one of Redisson.
	me    = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11:4611686018427387905"
	other = "b1a7c9d2-58b0-4c0e-8f3b-6b1f2f9d1c55:7"
	lease = 30 * time.Second

	// Clients and their owners, which wait for a lock that me holds.
	near    = "3f0c1f1e-6a4e-4b63-9d0e-0a4c6f0b7a11" // the client of me
	next    = near + ":2"
	far     = "90a4cbd5-6c57-4b54-a6c4-3f1f40e0b3de"
	older   = far + ":1"
	farther = "c2d7b5a0-1b43-4d8e-9a57-60f0c9a1e77d"
	newer   = farther + ":4"

	waiterLease = 7 * time.Second // of waiters

	// Other locks, for batches.
	north  = "account:1"
	middle = "account:2"
	south  = "account:3"
)

// The keys and channels of the lock.
const (
	lockChannel = "redisson_lock__channel:{order:42}"
	pairChannel = "redisson_rwlock:{order:42}"
	waiters     = "holdfast_lock_waiters:{order:42}"
	present     = "holdfast_lock_present:{order:42}"
	counter     = "redisson_lock_token:{order:42}"
	onceKey     = "holdfast_once:{order:42}"
)

// The lock in all its kinds, preferring with precedence for writers that wait.
var (
	plain      = lua.NewExclusive(lock, false)
	fenced     = lua.NewExclusive(lock, true)
	fair       = lua.Fair{Lock: lock, Counted: true}
	pair       = lua.ReadWrite{Lock: lock}
	preferring = lua.ReadWrite{Lock: lock, Bound: time.Minute}
)

// How long a test waits for what happens soon, and how often it checks.
const (
	eventually = 10 * time.Second
	poll       = time.Millisecond
)

// unlocked has the bytes of the announcement as a subscriber on a RESP2 connection receives them.
const unlocked = "*3\r\n$7\r\nmessage\r\n$33\r\nredisson_lock__channel:{order:42}\r\n$1\r\n0\r\n"

type client = rueidis.CoreClient

// start returns a server and a client of it.
func start(tb testing.TB) (*redistest.Server, rueidis.Client) {
	tb.Helper()
	s := redistest.Start(tb)
	return s, s.Client(tb)
}

// startHeld returns a server on which me holds the lock, and a client.
func startHeld(t *testing.T) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	return s, c
}

// lockPlain has me take the lock as a plain one, or returns the holder in the way.
func lockPlain(ctx context.Context, c client, lease time.Duration) (*lua.Holder, error) {
	_, _, holder, err := plain.Acquire(ctx, c, me, lease, "")
	return holder, err
}

// unlock releases down to so many levels of a plain or fenced lock, without hand-over.
func unlock(ctx context.Context, c client, owner string, count int) (lua.Released, error) {
	return plain.Release(ctx, c, owner, count, lua.HandOver{})
}

// register has owners refused, which registers them. It returns the ticket of the last one.
func register(t *testing.T, c client, e *lua.Exclusive, owners ...string) (ticket int64) {
	t.Helper()
	for _, owner := range owners {
		fence, got, holder, err := e.Acquire(t.Context(), c, owner, waiterLease,
			e.Registration(owner, waiterLease))
		require.NoError(t, err)
		require.NotNil(t, holder)
		require.Zero(t, fence)
		require.Greater(t, got, ticket)
		ticket = got
	}
	return ticket
}

// registrations returns those of all waiters, first come first.
func registrations(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	return s.DoStrings(t, "ZRANGE", waiters, "0", "-1")
}

// toAll hands the lock over to waiters of all processes.
var toAll = lua.HandOver{Others: true}

// toNext hands the lock over to next, before or after others.
func toNext(first bool) lua.HandOver {
	return lua.HandOver{Others: true, Successor: plain.Registration(next, waiterLease),
		SuccessorFirst: first}
}

// release releases the lock that me holds.
func release(t *testing.T, c client, e *lua.Exclusive, p lua.HandOver) lua.Released {
	t.Helper()
	out, err := e.Release(t.Context(), c, me, 0, p)
	require.NoError(t, err)
	return out
}

// releaseOf returns the release by me that leaves a count behind, announced on the lock's channel.
func releaseOf(lock string, count int) lua.BatchPart {
	return lua.BatchPart{Lock: lock, Channel: wire.Channel(lock), Owner: me, Count: count}
}

// hold writes a held lock with plain commands.
func hold(tb testing.TB, s *redistest.Server, key, owner, count string, left time.Duration) {
	tb.Helper()
	s.Do(tb, "HSET", key, owner, count)
	if left != wire.NoExpiry {
		s.Do(tb, "PEXPIRE", key, ms(left))
	}
}

func ms(d time.Duration) string { return decimal(d.Milliseconds()) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// holdKey returns the key of an owner's read hold of lock.
func holdKey(owner string, number int) string {
	return "{order:42}:" + owner + ":rwlock_timeout:" + strconv.Itoa(number)
}

// requireLock asserts the whole hash of a lock and, within 5 s, the rest of its lease.
func requireLock(tb testing.TB, s *redistest.Server, key string, counts map[string]string,
	left time.Duration,
) {
	tb.Helper()
	require.Equal(tb, counts, s.DoMap(tb, "HGETALL", key))
	requireTTL(tb, s, key, left)
}

func requireTTL(tb testing.TB, s *redistest.Server, key string, left time.Duration) {
	tb.Helper()
	pttl := s.DoInt(tb, "PTTL", key)
	if left == wire.NoExpiry {
		require.EqualValues(tb, -1, pttl)
		return
	}
	require.LessOrEqual(tb, pttl, left.Milliseconds())
	require.Greater(tb, pttl, (left - 5*time.Second).Milliseconds())
}

func requireFree(tb testing.TB, s *redistest.Server, key string) {
	tb.Helper()
	require.Zero(tb, s.DoInt(tb, "EXISTS", key))
}

// requireSuccessor asserts that a waiter holds the lock, for its own lease.
func requireSuccessor(t *testing.T, s *redistest.Server, owner string) {
	t.Helper()
	requireLock(t, s, lock, map[string]string{owner: "1"}, waiterLease)
}

// requireError asserts the class and code of an error of the package, and that it has advice.
func requireError(tb testing.TB, err error, class rediserr.Class, code string) rediserr.Error {
	tb.Helper()
	var e *rediserr.Error
	require.ErrorAs(tb, err, &e)
	require.Equal(tb, class, e.Class, "%+v", e)
	require.Equal(tb, code, e.Code, "%+v", e)
	require.NotEmpty(tb, e.Message)
	require.NotEmpty(tb, e.Advice, "%+v", e)
	require.Contains(tb, err.Error(), e.Advice)
	require.Equal(tb, class, rediserr.ClassOf(err))
	return *e
}

// subscriber reads the bytes that a server sends to one subscribed connection.
type subscriber struct{ net.Conn }

// attend has the client far listen, as it does before it registers waiters.
func attend(tb testing.TB, s *redistest.Server) subscriber {
	tb.Helper()
	return listen(tb, s, "SUBSCRIBE", lockChannel, present, present+":"+far)
}

// listen subscribes one connection to channels. The verb is SUBSCRIBE or SSUBSCRIBE.
func listen(tb testing.TB, s *redistest.Server, verb string, channels ...string) subscriber {
	tb.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr(), 5*time.Second)
	require.NoError(tb, err)
	tb.Cleanup(func() { conn.Close() })
	sub := subscriber{conn}
	for i, channel := range channels {
		_, err = io.WriteString(sub, array(verb, channel))
		require.NoError(tb, err)
		confirmation := array(strings.ToLower(verb), channel, "") // with a number for the text
		sub.requireBytes(tb, strings.TrimSuffix(confirmation, "$0\r\n\r\n")+fmt.Sprintf(":%d\r\n", i+1))
	}
	return sub
}

// requireGrant asserts the message that grants older the lock, which me released. Where the streak
// has no begin after the first hand-over, it began just now.
func (s subscriber) requireGrant(tb testing.TB, want wire.Grant) {
	tb.Helper()
	want.Lock, want.Owner = lock, older
	write := func() string {
		return array("message", present+":"+far, fmt.Sprint(older, " ", want.Ticket, " ", want.Fence,
			" ", want.Streak.Count, " ", want.Streak.Began, " ", lock))
	}
	begins := want.Streak.Began == 0 && want.Streak.Count > 1
	if begins {
		want.Streak.Began = time.Now().UnixMilli()
	}
	got := s.read(tb, len(write()))
	grant, ok := wire.ParseGrant(strings.TrimSuffix(string(got[strings.Index(string(got), older):]),
		"\r\n"))
	require.True(tb, ok, "got %q", got)
	if begins {
		began := time.UnixMilli(grant.Streak.Began)
		require.WithinDuration(tb, time.UnixMilli(want.Streak.Began), began, 10*time.Second)
		want.Streak.Began = grant.Streak.Began
	}
	require.Equal(tb, write(), string(got))
	require.Equal(tb, want, grant)
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
	require.Equal(tb, want, string(s.read(tb, len(want))))
}

// read returns the next bytes on the connection.
func (s subscriber) read(tb testing.TB, n int) []byte {
	tb.Helper()
	require.NoError(tb, s.SetReadDeadline(time.Now().Add(10*time.Second)))
	got := make([]byte, n)
	n, err := io.ReadFull(s, got)
	require.NoError(tb, err, "got %q", got[:n])
	return got
}

// array writes texts as a RESP2 array of bulk strings.
func array(texts ...string) string {
	encoded := fmt.Sprintf("*%d\r\n", len(texts))
	for _, text := range texts {
		encoded += fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
	}
	return encoded
}
