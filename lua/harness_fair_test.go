package lua_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// The fair lock under test, its keys and how its waiters are told.
const (
	fairQueue   = "redisson_lock_queue:{order:42}"
	fairScores  = "redisson_lock_timeout:{order:42}"
	fairTurn    = "holdfast_lock_turn:{order:42}"
	fairChannel = "redisson_lock__channel:{order:42}:" // an owner follows
	fairWindow  = time.Minute
)

var fair = lua.Fair{Lock: lock, Counted: true}

// Owners of waiters, in the order in which most tests queue them.
const (
	first  = "5f5d0cf4-0c2c-4a6a-9f2e-6f2a2b1d7e01:1"
	second = "5f5d0cf4-0c2c-4a6a-9f2e-6f2a2b1d7e02:2"
	third  = "5f5d0cf4-0c2c-4a6a-9f2e-6f2a2b1d7e03:3"
)

// ask has an owner that waits ask once, with fairWindow. It returns who is in the way.
func ask(t *testing.T, c rueidis.Client, owner string) *lua.Holder {
	t.Helper()
	holder, err := fair.Acquire(t.Context(), c, lua.FairRequest{Owner: owner, Count: 1, Lease: lease, Waits: true, Window: fairWindow})
	require.NoError(t, err)
	return holder
}

// askOnce has an owner that does not wait ask.
func askOnce(t *testing.T, c rueidis.Client, owner string) *lua.Holder {
	t.Helper()
	holder, err := fair.Acquire(t.Context(), c, lua.FairRequest{Owner: owner, Count: 1, Lease: lease, Waits: false, Window: fairWindow})
	require.NoError(t, err)
	return holder
}

// leave has an owner give up the lock, or its place in the queue.
func leave(t *testing.T, c rueidis.Client, owner string) lua.Released {
	t.Helper()
	out, err := fair.Release(t.Context(), c, owner, 0)
	require.NoError(t, err)
	return out
}

// queued returns a server on which other holds the lock and owners wait for it, in that order.
func queued(t *testing.T, owners ...string) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	for _, owner := range owners {
		require.Equal(t, other, ask(t, c, owner).Owner)
	}
	requireQueue(t, s, owners...)
	return s, c
}

// requireQueue asserts who is queued, head first, and that exactly those have scores.
func requireQueue(t *testing.T, s *redistest.Server, owners ...string) {
	t.Helper()
	require.Equal(t, append([]string{}, owners...), s.DoStrings(t, "LRANGE", fairQueue, "0", "-1"))
	require.ElementsMatch(t, owners, s.DoStrings(t, "ZRANGE", fairScores, "0", "-1"))
}

// requireHolder asserts who has the lock.
func requireHolder(t *testing.T, s *redistest.Server, owner string) {
	t.Helper()
	requireLock(t, s, lock, map[string]string{owner: "1"}, lease)
}

// fairState is all that Redis knows of the lock, but for its TTL.
func fairState(t *testing.T, s *redistest.Server) map[string]any {
	t.Helper()
	return map[string]any{
		"lock":   s.DoMap(t, "HGETALL", lock),
		"queue":  s.DoStrings(t, "LRANGE", fairQueue, "0", "-1"),
		"scores": s.DoMap(t, "ZRANGE", fairScores, "0", "-1", "WITHSCORES"),
		"turn":   s.DoString(t, "GET", fairTurn),
	}
}

// serverTime is the server's clock in milliseconds since the epoch, as scores count.
func serverTime(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	return leaseEnd(t, s, "a key that does not exist")
}

// busy is by how many milliseconds the server's idea of a time may differ from one that it is asked for: PTTL goes by when a
// script began, TIME by when it is called.
const busy = 100

// score is that of a queued owner.
func score(t *testing.T, s *redistest.Server, owner string) int64 {
	t.Helper()
	text := s.DoString(t, "ZSCORE", fairScores, owner)
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, "a score of Redisson's is a whole number: %q", text)
	return n
}

// enqueue writes a waiter with plain commands, as another library's scripts would.
func enqueue(t *testing.T, s *redistest.Server, owner string, score int64) {
	t.Helper()
	s.Do(t, "RPUSH", fairQueue, owner)
	s.Do(t, "ZADD", fairScores, strconv.FormatInt(score, 10), owner)
}

// requireTurn asserts whose turn it is and, within 400 ms, for how long still.
func requireTurn(t *testing.T, s *redistest.Server, owner string, left time.Duration) {
	t.Helper()
	ends, of, found := strings.Cut(s.DoString(t, "GET", fairTurn), " ")
	require.True(t, found)
	require.Equal(t, owner, of[strings.LastIndex(of, " ")+1:])
	end, err := strconv.ParseInt(ends, 10, 64)
	require.NoError(t, err)
	require.InDelta(t, left.Milliseconds(), end-serverTime(t, s), 400)
	require.Positive(t, s.DoInt(t, "PTTL", fairTurn), "a turn must not stay for ever")
}

// endTurn makes the turn of the head end now.
func endTurn(t *testing.T, s *redistest.Server) {
	t.Helper()
	_, rest, found := strings.Cut(s.DoString(t, "GET", fairTurn), " ")
	require.True(t, found, "nobody has a turn")
	s.Do(t, "SET", fairTurn, strconv.FormatInt(serverTime(t, s), 10)+" "+rest, "KEEPTTL")
}
