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

// serverTime returns the server's clock as scores count: in milliseconds since the epoch.
func serverTime(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	return leaseEnd(t, s, "a key that does not exist")
}

// leaseEnd returns when the lease of a key ends, or the time now if it has none.
func leaseEnd(t *testing.T, s *redistest.Server, key string) int64 {
	t.Helper()
	return s.DoInt(t, "EVAL", `local time = redis.call('TIME')
		local now = time[1] * 1000 + math.floor(time[2] / 1000)
		return now + math.max(0, redis.call('PTTL', KEYS[1]))`, "1", key)
}

// busy is by how many milliseconds the server's notion of a time may differ from the requested one:
// PTTL counts from the begin of a script, TIME from its call.
const busy = 100

// score returns the score of a queued owner.
func score(t *testing.T, s *redistest.Server, owner string) int64 {
	t.Helper()
	text := s.DoString(t, "ZSCORE", fairScores, owner)
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, "Redisson's scores are whole numbers: %q", text)
	return n
}

// enqueue queues a waiter with plain commands, as another library's scripts would.
func enqueue(t *testing.T, s *redistest.Server, owner string, score int64) {
	t.Helper()
	s.Do(t, "RPUSH", fairQueue, owner)
	s.Do(t, "ZADD", fairScores, strconv.FormatInt(score, 10), owner)
}

// age moves all scores into the past by d, as if that much time had passed without requests.
func age(t *testing.T, s *redistest.Server, d time.Duration) {
	t.Helper()
	for _, owner := range s.DoStrings(t, "ZRANGE", fairScores, "0", "-1") {
		s.Do(t, "ZINCRBY", fairScores, "-"+ms(d), owner)
	}
}

// requireTurn asserts whose turn it is and, within 400 ms, for how long.
func requireTurn(t *testing.T, s *redistest.Server, owner string, left time.Duration) {
	t.Helper()
	ends, of, found := strings.Cut(s.DoString(t, "GET", fairTurn), " ")
	require.True(t, found)
	require.Equal(t, owner, of[strings.LastIndex(of, " ")+1:])
	end, err := strconv.ParseInt(ends, 10, 64)
	require.NoError(t, err)
	require.InDelta(t, left.Milliseconds(), end-serverTime(t, s), 400)
	require.Positive(t, s.DoInt(t, "PTTL", fairTurn), "a turn must expire")
}

// endTurn ends the turn of the head now.
func endTurn(t *testing.T, s *redistest.Server) {
	t.Helper()
	_, rest, found := strings.Cut(s.DoString(t, "GET", fairTurn), " ")
	require.True(t, found, "no waiter has a turn")
	s.Do(t, "SET", fairTurn, strconv.FormatInt(serverTime(t, s), 10)+" "+rest, "KEEPTTL")
}

func askFor(t *testing.T, c rueidis.Client, owner string, window time.Duration) {
	t.Helper()
	holder, err := fair.Acquire(t.Context(), c,
		lua.FairRequest{Owner: owner, Count: 1, Lease: lease, Waits: true, Window: window})
	require.NoError(t, err)
	require.NotNil(t, holder)
}

func TestFirstScoreIsTheEndOfTheLeaseAndTheWindow(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	askFor(t, c, first, 7*time.Second)
	require.InDelta(t, leaseEnd(t, s, lock)+7000, score(t, s, first), busy)
}

func TestFirstScoreOfALockWithoutExpiryIsNowAndTheWindow(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lua.NoExpiry)
	before := serverTime(t, s)
	askFor(t, c, first, 7*time.Second)
	after := serverTime(t, s)
	require.GreaterOrEqual(t, score(t, s, first), before+7000)
	require.LessOrEqual(t, score(t, s, first), after+7000)
}

func TestNextScoreIsThatOfTheTailAndTheWindow(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	askFor(t, c, first, 7*time.Second)
	askFor(t, c, second, time.Hour)
	askFor(t, c, third, 1500*time.Millisecond)
	require.Equal(t, score(t, s, first)+3600_000, score(t, s, second))
	require.Equal(t, score(t, s, second)+1500, score(t, s, third))
}

func TestWaitersCloseUpToTheEndOfTheLeaseWhenTheHeadTakesTheLock(t *testing.T) {
	s, c := start(t)
	base := serverTime(t, s) + time.Hour.Milliseconds() // so that no score is moved
	windows := map[string]time.Duration{
		first:  7 * time.Second,
		second: 5 * time.Second,
		third:  3 * time.Second,
	}
	enqueue(t, s, first, base+7000)
	enqueue(t, s, second, base+12000)
	enqueue(t, s, third, base+15000)
	holder, err := fair.Acquire(t.Context(), c,
		lua.FairRequest{Owner: first, Count: 1, Lease: lease, Waits: true, Window: windows[first]})
	require.NoError(t, err)
	require.Nil(t, holder)
	requireQueue(t, s, second, third)
	require.InDelta(t, leaseEnd(t, s, lock)+5000, score(t, s, second), busy)
	require.Equal(t, score(t, s, second)+3000, score(t, s, third))
}

func TestOnlyThoseBehindAWaiterThatLeavesCloseUp(t *testing.T) {
	lost := fairWindow.Milliseconds()
	for _, of := range []struct {
		leaver  string
		shifted map[string]int64 // by how much the scores of the others fall
	}{
		{first, map[string]int64{second: lost, third: lost}},
		{second, map[string]int64{first: 0, third: lost}},
		{third, map[string]int64{first: 0, second: 0}},
	} {
		t.Run(of.leaver, func(t *testing.T) {
			s, c := queued(t, first, second, third)
			before := map[string]int64{}
			for owner := range of.shifted {
				before[owner] = score(t, s, owner)
			}
			out, err := fair.Release(t.Context(), c, 0, of.leaver)
			require.NoError(t, err)
			require.False(t, out.Held)
			require.EqualValues(t, 2, s.DoInt(t, "LLEN", fairQueue))
			for owner, lost := range of.shifted {
				require.InDelta(t, before[owner]-lost, score(t, s, owner), busy, owner)
			}
			requireHolder(t, s, other)
		})
	}
}

func TestLeavingOwnerThatIsNotQueuedShiftsNobody(t *testing.T) {
	s, c := queued(t, first, second)
	for range 2 { // first while the lock is held, then while it is free
		before := fairState(t, s)
		require.Equal(t, lua.Released{}, leave(t, c, me))
		require.Equal(t, before, fairState(t, s))
		s.Do(t, "DEL", lock)
	}
}

func TestLeavingHeadTellsTheNextThatTheLockIsFree(t *testing.T) {
	s, c := queued(t, first, second)
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+second)
	s.Do(t, "DEL", lock)
	require.False(t, leave(t, c, first).Held)
	sub.requireBytes(t, array("message", fairChannel+second, "0"))
	require.Nil(t, ask(t, c, second))
}

func TestLeavingHeadOfALockThatIsHeldTellsNobody(t *testing.T) {
	s, c := queued(t, first, second)
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+second)
	leave(t, c, first)
	sub.requireNothing(t)
}

func TestWaiterThatAsksStaysQueuedBeyondItsWindow(t *testing.T) {
	s, c := queued(t, first, second, third)
	age(t, s, 10*fairWindow) // enough to drop all of them
	for _, owner := range []string{first, second, third} {
		require.Equal(t, other, ask(t, c, owner).Owner)
	}
	requireQueue(t, s, first, second, third)
	// A head stays for the lease, its window and two requests more: it may miss one.
	require.InDelta(t, leaseEnd(t, s, lock)+fairWindow.Milliseconds()+2*lua.MaxNap.Milliseconds(),
		score(t, s, first), busy)
	require.GreaterOrEqual(t, score(t, s, second), score(t, s, first)+fairWindow.Milliseconds())
	require.GreaterOrEqual(t, score(t, s, third), score(t, s, second)+fairWindow.Milliseconds())
}

func TestWaiterThatAsksKeepsItsDistanceFromTheOneBefore(t *testing.T) {
	s, c := queued(t, first, second, third)
	before := map[string]int64{
		first:  score(t, s, first),
		second: score(t, s, second),
		third:  score(t, s, third),
	}
	s.Do(t, "ZADD", fairScores, strconv.FormatInt(before[first]+1, 10), second)
	ask(t, c, second)
	require.Equal(t, before[first], score(t, s, first))
	require.Equal(t, before[first]+fairWindow.Milliseconds(), score(t, s, second))
	require.Equal(t, before[third]+fairWindow.Milliseconds()-1, score(t, s, third),
		"not moved with it")
}

func TestThoseBehindAWaiterThatAsksKeepTheirDistance(t *testing.T) {
	s, c := queued(t, first, second, third)
	age(t, s, 20*time.Second)
	before := map[string]int64{
		first:  score(t, s, first),
		second: score(t, s, second),
		third:  score(t, s, third),
	}
	ask(t, c, first)
	forward := score(t, s, first) - before[first]
	require.GreaterOrEqual(t, forward, int64(29_990))
	require.Equal(t, before[second]+forward, score(t, s, second))
	require.Equal(t, before[third]+forward, score(t, s, third))
}

func TestRequestsDoNotMakeScoresGrow(t *testing.T) {
	s, c := queued(t, first, second)
	for range 100 {
		ask(t, c, first)
		ask(t, c, second)
	}
	require.InDelta(t, leaseEnd(t, s, lock)+fairWindow.Milliseconds()+10_000, score(t, s, first),
		busy)
	require.Equal(t, score(t, s, first)+fairWindow.Milliseconds(), score(t, s, second))
}

// Redisson's waiters do not ask again, and are woken on a channel like ours.
func TestWaiterOfRedissonKeepsItsPlaceAmongOurs(t *testing.T) {
	const java = "7c1f4b36-54f1-4b0f-8f51-1e0b6a5f2c09:88"
	s, c := queued(t, first)
	enqueue(t, s, java, score(t, s, first)+300_000)
	ask(t, c, second)
	require.Equal(t, score(t, s, java)+fairWindow.Milliseconds(), score(t, s, second))
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+java)

	// As much time passes as its score would last, with ours asking on both sides of it.
	for range 20 {
		age(t, s, 20*time.Second)
		ask(t, c, first)
		ask(t, c, second)
	}
	requireQueue(t, s, first, java, second)
	require.GreaterOrEqual(t, score(t, s, java), score(t, s, first)+300_000)
	leave(t, c, other)
	require.Nil(t, ask(t, c, first))
	sub.requireBytes(
		t,
		array("message", fairChannel+java, "500"),
	) // the first has no listener; Redisson ignores that
	leave(t, c, first)
	sub.requireBytes(t, array("message", fairChannel+java, "0"))
	requireTurn(t, s, java, 10*time.Second)
	require.Equal(t, java, ask(t, c, second).Owner)

	// Do what Redisson's script does: take the lock, and subtract the window from all scores
	// behind.
	s.Do(t, "LPOP", fairQueue)
	s.Do(t, "ZREM", fairScores, java)
	s.Do(t, "ZINCRBY", fairScores, "-300000", second)
	s.Do(t, "HSET", lock, java, "1")
	s.Do(t, "PEXPIRE", lock, ms(lease))
	require.Equal(t, java, ask(t, c, second).Owner)
	requireQueue(t, s, second)
	s.Do(t, "DEL", lock)
	require.Nil(t, ask(t, c, second))
}

func TestStaleHeadsAreDroppedAndTheNewHeadIsTold(t *testing.T) {
	for name, drop := range map[string]func(*testing.T, *redistest.Server, rueidis.Client){
		"by a release": func(t *testing.T, _ *redistest.Server, c rueidis.Client) { leave(t, c, other) },
		"by a request": func(t *testing.T, s *redistest.Server, c rueidis.Client) {
			s.Do(t, "DEL", lock)
			ask(t, c, me)
		},
		"by one without wait": func(t *testing.T, s *redistest.Server, c rueidis.Client) {
			s.Do(t, "DEL", lock)
			askOnce(t, c, me)
		},
		"by a waiter that leaves": func(t *testing.T, s *redistest.Server, c rueidis.Client) {
			s.Do(t, "DEL", lock)
			leave(t, c, "last")
		},
		"by a force unlock": func(t *testing.T, _ *redistest.Server, c rueidis.Client) {
			_, err := fair.ForceUnlock(t.Context(), c)
			require.NoError(t, err)
		},
		"by a force unlock while free": func(t *testing.T, s *redistest.Server, c rueidis.Client) {
			s.Do(t, "DEL", lock)
			_, err := fair.ForceUnlock(t.Context(), c)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			hold(t, s, lock, other, "1", lease)
			now := serverTime(t, s)
			enqueue(t, s, "gone:1", now-10_000)
			s.Do(t, "RPUSH", fairQueue, "without a score:1")
			enqueue(t, s, "gone:2", now-1)
			enqueue(t, s, third, now+60_000)
			enqueue(t, s, "last", now+120_000)
			sub := subscribe(t, s, "SUBSCRIBE", fairChannel+third)
			drop(t, s, c)
			require.Equal(t, third, s.DoString(t, "LINDEX", fairQueue, "0"))
			require.Empty(t, s.DoString(t, "ZSCORE", fairScores, "gone:1"))
			require.Empty(t, s.DoString(t, "ZSCORE", fairScores, "gone:2"))
			sub.requireBytes(t, array("message", fairChannel+third, "0"))
			require.Nil(t, ask(t, c, third))
		})
	}
}

func TestStaleHeadsOfALockThatIsHeldAreDropped(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	s.Do(t, "RPUSH", fairQueue, "without a score:1")
	enqueue(t, s, "gone:1", serverTime(t, s)-1)
	require.Equal(t, other, ask(t, c, first).Owner)
	requireQueue(t, s, first)
	require.InDelta(t, leaseEnd(t, s, lock)+fairWindow.Milliseconds(), score(t, s, first), busy)
}

func TestWaiterWithAScoreThatIsNotQueuedIsQueued(t *testing.T) {
	s, c := queued(t, first)
	s.Do(t, "ZADD", fairScores, "1", second)
	ask(t, c, second)
	requireQueue(t, s, first, second)
	require.Equal(t, score(t, s, first)+fairWindow.Milliseconds(), score(t, s, second))
}
