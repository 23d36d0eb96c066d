package lua_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestHeadThatListensHasTenSeconds(t *testing.T) {
	s, c := queued(t, first, second)
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+first)
	leave(t, c, other)
	sub.requireBytes(t, array("message", fairChannel+first, "0"))
	requireTurn(t, s, first, 10*time.Second)
	turn := s.DoString(t, "GET", fairTurn)
	for range 3 { // requests of others tell it again, but do not extend its turn
		holder := ask(t, c, second)
		require.Equal(t, first, holder.Owner)
		require.LessOrEqual(t, holder.Nap, 10*time.Second)
		sub.requireBytes(t, array("message", fairChannel+first, "0"))
		require.Equal(t, turn, s.DoString(t, "GET", fairTurn))
	}
	endTurn(t, s)
	require.Nil(t, ask(t, c, second))
	requireHolder(t, s, second)
	require.Zero(t, s.DoInt(t, "EXISTS", fairQueue, fairScores, fairTurn))
}

func TestHeadThatNobodyListensForHasHalfASecond(t *testing.T) {
	s, c := queued(t, first, second)
	leave(t, c, other)
	requireTurn(t, s, first, 500*time.Millisecond)
	holder := ask(t, c, second)
	require.Equal(t, first, holder.Owner)
	require.LessOrEqual(t, holder.Nap, 500*time.Millisecond)
	endTurn(t, s)
	require.Nil(t, ask(t, c, second))
}

func TestHeadThatStopsListeningHasHalfASecondFromThen(t *testing.T) {
	s, c := queued(t, first, second)
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+first)
	leave(t, c, other)
	requireTurn(t, s, first, 10*time.Second)
	require.NoError(t, sub.Close())
	require.Eventually(t, func() bool {
		return s.DoStrings(t, "PUBSUB", "NUMSUB", fairChannel+first)[1] == "0"
	}, eventually, poll)
	require.Equal(t, first, ask(t, c, second).Owner)
	requireTurn(t, s, first, 500*time.Millisecond)
	turn := s.DoString(t, "GET", fairTurn)
	for range 3 { // it is known to be silent already
		require.LessOrEqual(t, ask(t, c, second).Nap, 500*time.Millisecond)
	}
	require.Equal(t, turn, s.DoString(t, "GET", fairTurn))
	endTurn(t, s)
	require.Nil(t, ask(t, c, second))
}

func TestHeadThatAsksAfterItsTurnTakesTheLockIfNobodyElseAsked(t *testing.T) {
	s, c := queued(t, first, second)
	leave(t, c, other)
	endTurn(t, s)
	require.Nil(t, ask(t, c, first))
	requireQueue(t, s, second)
}

func TestDroppedWaiterThatAsksAgainIsQueuedAtTheEnd(t *testing.T) {
	s, c := queued(t, first, second)
	leave(t, c, other)
	endTurn(t, s)
	require.Nil(t, ask(t, c, second))
	require.Equal(t, second, ask(t, c, first).Owner)
	requireQueue(t, s, first)
}

// Where PUBLISH does not count listeners elsewhere, silence means nothing.
func TestHeadThatIsNotCountedHasTenSeconds(t *testing.T) {
	s, c := queued(t, first, second, third)
	uncounted := lua.Fair{Lock: lock}
	_, err := uncounted.Release(t.Context(), c, 0, other)
	require.NoError(t, err)
	requireTurn(t, s, first, 10*time.Second)
	endTurn(t, s)
	holder, err := uncounted.Acquire(t.Context(), c,
		lua.FairRequest{Owner: third, Count: 1, Lease: lease, Waits: true, Window: fairWindow})
	require.NoError(t, err)
	require.Equal(t, second, holder.Owner, "dropped a waiter that may listen")
	requireTurn(t, s, second, 10*time.Second)
}

func TestWaitersOfADeadProcessAreDroppedAtOnce(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	for i := range 10 {
		ask(t, c, fmt.Sprintf("dead:%d", i))
	}
	ask(t, c, first)
	ask(t, c, second)
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+first)
	leave(t, c, other)
	require.Equal(t, "dead:0", ask(t, c, second).Owner)
	endTurn(t, s)
	require.Equal(t, first, ask(t, c, second).Owner)
	requireQueue(t, s, first, second)
	sub.requireBytes(t,
		array("message", fairChannel+first, "500")+array("message", fairChannel+first, "0"))
	requireTurn(t, s, first, 10*time.Second)
	require.Nil(t, ask(t, c, first))
}

func TestSilentWaiterBehindOneThatListenedHasItsOwnTurn(t *testing.T) {
	s, c := queued(t, first, second, third)
	subscribe(t, s, "SUBSCRIBE", fairChannel+first)
	leave(t, c, other)
	requireTurn(t, s, first, 10*time.Second)
	endTurn(t, s)
	require.Equal(t, second, ask(t, c, third).Owner)
	requireTurn(t, s, second, 500*time.Millisecond)
	requireQueue(t, s, second, third)
}

// Redisson's waiters leave without telling this library. One that was the head and used up its turn
// may come back behind another, and get the same score when that one leaves: gaps close.
func TestTurnOfAWaiterThatLeftDoesNotCountWhenItReturnsWithTheSameScore(t *testing.T) {
	const java = "7c1f4b36-54f1-4b0f-8f51-1e0b6a5f2c09:88"
	s, c := queued(t, first)
	again := serverTime(t, s) + 300_000
	s.Do(
		t,
		"ZADD",
		fairScores,
		strconv.FormatInt(serverTime(t, s), 10),
		first,
	) // so that its leaving changes no score
	enqueue(t, s, java, again)
	s.Do(t, "DEL", lock)
	passed := strconv.FormatInt(serverTime(t, s)-1, 10)
	s.Do(t, "SET", fairTurn, passed+" "+strconv.FormatInt(again, 10)+" "+java, "PX", "20000")

	_, err := fair.Release(t.Context(), c, 0, first)
	require.NoError(t, err)
	require.Equal(t, again, score(t, s, java))
	requireQueue(t, s, java)
	requireTurn(t, s, java, 500*time.Millisecond)
}

// A client that hangs may have many waiters while its connection is open.
func TestWaitersOfAClientThatHangsGetLessTimeEach(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	for i := range 6 {
		owner := fmt.Sprintf("hung:%d", i)
		ask(t, c, owner)
		subscribe(t, s, "SUBSCRIBE", fairChannel+owner)
	}
	ask(t, c, first)
	leave(t, c, other)
	turns := []time.Duration{
		10 * time.Second, 500 * time.Millisecond, 125 * time.Millisecond, 100 * time.Millisecond,
		100 * time.Millisecond, 100 * time.Millisecond,
	}
	for i, turn := range turns {
		holder := ask(t, c, first)
		require.Equal(t, fmt.Sprintf("hung:%d", i), holder.Owner)
		require.LessOrEqual(t, holder.Nap, turn)
		if turn > time.Second {
			require.Greater(t, holder.Nap, turn-time.Second)
		}
		endTurn(t, s)
	}
	require.Nil(t, ask(t, c, first))
}

// A turn that ended in an earlier round must not count against a head that has its first chance.
func TestTurnOfAnEarlierRoundDropsNobody(t *testing.T) {
	for name, between := range map[string]func(*testing.T, *redistest.Server, rueidis.Client){
		"taken and released": func(t *testing.T, _ *redistest.Server, c rueidis.Client) {
			require.Nil(t, ask(t, c, first))
			leave(t, c, first)
		},
		"held by another kind": func(t *testing.T, s *redistest.Server, c rueidis.Client) {
			hold(t, s, lock, me, "1", lease)
			ask(t, c, second)
			s.Do(t, "DEL", lock)
		},
		"force-unlocked meanwhile": func(t *testing.T, s *redistest.Server, c rueidis.Client) {
			hold(t, s, lock, me, "1", lease)
			_, err := fair.ForceUnlock(t.Context(), c)
			require.NoError(t, err)
		},
		"released meanwhile": func(t *testing.T, s *redistest.Server, c rueidis.Client) {
			hold(t, s, lock, me, "1", lease)
			require.True(t, leave(t, c, me).Held)
		},
		"the head left": func(t *testing.T, _ *redistest.Server, c rueidis.Client) { leave(t, c, first) },
		// Redisson's owners reuse their names, and its scripts know no turns.
		"left and queued again by Redisson": func(t *testing.T, s *redistest.Server, _ rueidis.Client) {
			s.Do(t, "LPOP", fairQueue)
			s.Do(t, "ZREM", fairScores, first)
			s.Do(t, "DEL", fairQueue, fairScores)
			enqueue(t, s, first, serverTime(t, s)+300_000)
			enqueue(t, s, second, serverTime(t, s)+600_000)
		},
		"taken, released and queued again by Redisson": func(
			t *testing.T, s *redistest.Server, _ rueidis.Client,
		) {
			s.Do(t, "DEL", fairQueue, fairScores)
			enqueue(t, s, first, serverTime(t, s)+300_000)
			enqueue(t, s, second, serverTime(t, s)+600_000)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := queued(t, first, second, third)
			leave(t, c, other)
			requireTurn(t, s, first, 500*time.Millisecond)
			endTurn(t, s)
			between(t, s, c)
			head := s.DoString(t, "LINDEX", fairQueue, "0")
			holder := ask(t, c, third)
			require.NotNil(t, holder)
			require.Equal(t, head, holder.Owner, "dropped for the turn of another")
			requireTurn(t, s, head, 500*time.Millisecond)
		})
	}
}
