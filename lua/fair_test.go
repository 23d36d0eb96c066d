package lua_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// The keys of a fair lock and its waiters' channels.
const (
	fairQueue   = "redisson_lock_queue:{order:42}"
	fairScores  = "redisson_lock_timeout:{order:42}"
	fairTurn    = "holdfast_lock_turn:{order:42}"
	fairBudgets = "holdfast_lock_budget:{order:42}"
	fairChannel = "redisson_lock__channel:{order:42}:" // an owner follows
	fairWindow  = time.Minute
)

// The waiters' owners, in the order in which most tests queue them.
const (
	first  = "5f5d0cf4-0c2c-4a6a-9f2e-6f2a2b1d7e01:1"
	second = "5f5d0cf4-0c2c-4a6a-9f2e-6f2a2b1d7e02:2"
)

// ask has an owner ask once that waits without a limit, and returns the holder.
func ask(t *testing.T, c client, owner string) *lua.Holder {
	t.Helper()
	holder, err := fair.Acquire(t.Context(), c,
		lua.FairRequest{Owner: owner, Count: 1, Lease: lease, Waits: true, Window: fairWindow})
	require.NoError(t, err)
	return holder
}

// leave has an owner give up the lock or its place in the queue.
func leave(t *testing.T, c client, owner string) lua.Released {
	t.Helper()
	out, err := fair.Release(t.Context(), c, 0, owner)
	require.NoError(t, err)
	return out
}

// requireQueue asserts who is queued, head first, and that exactly those have scores.
func requireQueue(t *testing.T, s *redistest.Server, owners ...string) {
	t.Helper()
	require.Equal(t, append([]string{}, owners...), s.DoStrings(t, "LRANGE", fairQueue, "0", "-1"))
	require.ElementsMatch(t, owners, s.DoStrings(t, "ZRANGE", fairScores, "0", "-1"))
}

// serverTime returns the server's clock as scores count: in milliseconds since the epoch.
func serverTime(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	return s.DoInt(t, "EVAL", `local time = redis.call('TIME')
		return time[1] * 1000 + math.floor(time[2] / 1000)`, "0")
}

// Redisson's waiters leave without telling this library. One that was the head and used up its turn
// may come back behind another, and get the same score when that one leaves: gaps close.
func TestTurnOfAWaiterThatLeftDoesNotCountWhenItReturnsWithTheSameScore(t *testing.T) {
	const java = "7c1f4b36-54f1-4b0f-8f51-1e0b6a5f2c09:88"
	s, c := start(t)
	now := serverTime(t, s)
	again := decimal(now + 300_000)
	s.Do(t, "RPUSH", fairQueue, first, java)
	s.Do(t, "ZADD", fairScores, decimal(now), first, again, java) // the first closes no gap
	s.Do(t, "SET", fairTurn, decimal(now-1)+" "+again+" "+java, "PX", "20000")
	leave(t, c, first)
	require.Equal(t, again, s.DoString(t, "ZSCORE", fairScores, java))
	requireQueue(t, s, java)
	ends, _, _ := strings.Cut(s.DoString(t, "GET", fairTurn), " ")
	end, err := strconv.ParseInt(ends, 10, 64)
	require.NoError(t, err)
	require.Greater(t, end, now)
}

// A client that hangs may have many waiters while its connection is open.
func TestWaitersOfAClientThatHangsGetLessTimeEach(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	for i := range 6 {
		owner := fmt.Sprintf("hung:%d", i)
		ask(t, c, owner)
		listen(t, s, "SUBSCRIBE", fairChannel+owner)
	}
	ask(t, c, first)
	leave(t, c, other)
	for i, turn := range []time.Duration{10 * time.Second, 500 * time.Millisecond,
		125 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond} {
		holder := ask(t, c, first)
		require.Equal(t, fmt.Sprintf("hung:%d", i), holder.Owner)
		require.LessOrEqual(t, holder.Sleep, turn)
		if i == 0 { // its turn has begun with the release, and the next shorter one has half a second
			require.Greater(t, holder.Sleep, turn/2)
		}
		_, rest, _ := strings.Cut(s.DoString(t, "GET", fairTurn), " ")
		s.Do(t, "SET", fairTurn, decimal(serverTime(t, s))+" "+rest, "KEEPTTL") // its turn is over
	}
	require.Nil(t, ask(t, c, first))
}

func TestNothingStaysOfAWaiterThatAnotherProgramDropped(t *testing.T) {
	for name, drop := range map[string]func(*testing.T, *redistest.Server){
		"Redisson, which knows no budgets": func(t *testing.T, s *redistest.Server) {
			s.Do(t, "LPOP", fairQueue)
			s.Do(t, "ZREM", fairScores, first)
		},
		"an operator": func(t *testing.T, s *redistest.Server) { s.Do(t, "DEL", fairQueue) },
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			hold(t, s, lock, other, "1", lease)
			_, err := fair.Acquire(t.Context(), c, lua.FairRequest{Owner: first, Count: 1, Lease: lease,
				Waits: true, Window: fairWindow, Budget: 10 * time.Hour})
			require.NoError(t, err)
			drop(t, s)
			leave(t, c, first)
			leave(t, c, other)
			require.Zero(t, s.DoInt(t, "DBSIZE"))
		})
	}
}
