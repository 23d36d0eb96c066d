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

const fairBudgets = "holdfast_lock_budget:{order:42}"

// request has an owner ask for the lock that is willing to wait for budget.
func request(
	t *testing.T,
	c rueidis.Client,
	owner string,
	budget time.Duration,
	until time.Time,
) *lua.Holder {
	t.Helper()
	holder, err := fair.Acquire(
		t.Context(),
		c,
		lua.FairRequest{Owner: owner, Count: 1, Lease: lease, Waits: true, Window: fairWindow,
			Budget: budget, Until: until},
	)
	require.NoError(t, err)
	return holder
}

// endBudget makes the budget of an owner end now.
func endBudget(t *testing.T, s *redistest.Server, owner string) {
	t.Helper()
	require.Zero(t, s.DoInt(t, "ZADD", fairBudgets, "1", owner), "it had no budget")
}

func TestWaiterWhoseBudgetIsOverIsDroppedByTheNextCommand(t *testing.T) {
	for name, next := range map[string]func(*testing.T, rueidis.Client){
		"a request": func(t *testing.T, c rueidis.Client) { ask(t, c, third) },
		"a late request": func(t *testing.T, c rueidis.Client) {
			request(t, c, me, time.Second, time.UnixMilli(1))
		},
		"a waiter that leaves": func(t *testing.T, c rueidis.Client) { leave(t, c, me) },
		"a force unlock": func(t *testing.T, c rueidis.Client) {
			_, err := fair.ForceUnlock(t.Context(), c)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := queued(t, first, second)
			request(t, c, me+"1", time.Hour, time.Time{})
			request(t, c, me+"2", time.Hour, time.Time{})
			ask(t, c, third)
			distance := score(t, s, third) - score(t, s, second)
			endBudget(t, s, me+"1")
			endBudget(t, s, me+"2")
			next(t, c)
			requireQueue(t, s, first, second, third)
			require.Equal(
				t,
				distance-2*fairWindow.Milliseconds(),
				score(t, s, third)-score(t, s, second),
				"the gaps close",
			)
			require.Zero(t, s.DoInt(t, "EXISTS", fairBudgets))
		})
	}
}

func TestRequestThatComesAfterItsBudgetTakesNothing(t *testing.T) {
	s, c := start(t)
	before := serverTime(t, s)
	past := time.UnixMilli(before - 1)
	holder := request(t, c, me, time.Minute, past)
	require.NotNil(t, holder)
	require.GreaterOrEqual(t, holder.Clock.UnixMilli(), before)
	require.LessOrEqual(t, holder.Clock.UnixMilli(), serverTime(t, s))
	require.Equal(
		t,
		10*time.Millisecond,
		holder.Nap,
		"a waiter learns the time, and asks again",
	)
	require.Zero(t, s.DoInt(t, "DBSIZE"))

	hold(t, s, lock, other, "1", lease)
	require.Equal(t, other, request(t, c, me, time.Minute, past).Owner)
	require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))

	s.Do(t, "DEL", lock)
	require.Nil(t, request(t, c, me, time.Minute, holder.Clock.Add(time.Minute)))
}

func TestBudgetByAnotherServersClockEndsNoLaterThanItIsLong(t *testing.T) {
	s, c := queued(t)
	before := serverTime(t, s)
	request(t, c, first, time.Minute, time.UnixMilli(before).Add(24*time.Hour))
	ends, err := strconv.ParseInt(s.DoString(t, "ZSCORE", fairBudgets, first), 10, 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, ends, before+60_000)
	require.LessOrEqual(t, ends, serverTime(t, s)+60_000)
	require.Greater(
		t,
		s.DoInt(t, "PTTL", fairBudgets),
		int64(60_000),
		"the next command must find it over",
	)
}

func TestTurnOfAHeadEndsWithItsBudget(t *testing.T) {
	s, c := queued(t)
	request(t, c, first, 3*time.Second, time.Time{})
	subscribe(t, s, "SUBSCRIBE", fairChannel+first)
	ask(t, c, second)
	leave(t, c, other)
	require.LessOrEqual(t, ask(t, c, second).Nap, 3*time.Second)
	endBudget(t, s, first)
	require.Nil(t, ask(t, c, second))
	require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"), "only the lock remains")
}

func TestManyWaitersLeaveByOneCommand(t *testing.T) {
	s, c := queued(t, first)
	owners := make([]string, lua.MaxFairReleases)
	for i := range owners {
		owners[i] = fmt.Sprintf("%s%d", me, i)
		request(t, c, owners[i], time.Hour, time.Time{})
	}
	ask(t, c, second)
	out, err := fair.Release(t.Context(), c, 0, owners...)
	require.NoError(t, err)
	require.False(t, out.Held)
	requireQueue(t, s, first, second)
	require.Equal(t, score(t, s, first)+fairWindow.Milliseconds(), score(t, s, second))

	out, err = fair.Release(t.Context(), c, 0, second, other, "somebody")
	require.NoError(t, err)
	require.True(t, out.Held)
	requireQueue(t, s, first)
	require.Nil(t, ask(t, c, first))
}

// When the holder dies no waiter asks, and the next one knew of the lease before.
func TestNextHeadIsToldOfALeaseThatEndsBeforeItAsks(t *testing.T) {
	for name, does := range map[string]func(*testing.T, *redistest.Server, rueidis.Client){
		"the head takes the lock": func(t *testing.T, s *redistest.Server, c rueidis.Client) {
			s.Do(t, "DEL", lock)
			_, err := fair.Acquire(t.Context(), c, lua.FairRequest{Owner: first, Count: 1,
				Lease: 2 * time.Second, Waits: true, Window: fairWindow})
			require.NoError(t, err)
		},
		"the head leaves": func(t *testing.T, s *redistest.Server, c rueidis.Client) {
			s.Do(t, "PEXPIRE", lock, "2000")
			leave(t, c, first)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := queued(t, first, second)
			sub := subscribe(t, s, "SUBSCRIBE", fairChannel+second)
			does(t, s, c)
			told := sub.message(t, fairChannel+second)
			require.LessOrEqual(t, told, 2000)
			require.GreaterOrEqual(t, told, int(s.DoInt(t, "PTTL", lock)))
			sub.requireNothing(t)
		})
	}
	t.Run("not of a lease that ends later", func(t *testing.T) {
		s, c := queued(t, first, second)
		sub := subscribe(t, s, "SUBSCRIBE", fairChannel+second)
		s.Do(t, "DEL", lock)
		require.Nil(t, ask(t, c, first))
		sub.requireNothing(t)
	})
}

// Each would begin a turn just when the budget of the previous one ends.
func TestWaitersOfADeadClientShareATurnThoughTheirBudgetsEndOneAfterTheOther(t *testing.T) {
	s, c := queued(t)
	for i := range 3 {
		request(t, c, fmt.Sprintf("dead:%d", i), time.Hour, time.Time{})
	}
	request(t, c, "another:1", time.Hour, time.Time{})
	ask(t, c, first)
	leave(t, c, other)
	requireTurn(t, s, "dead:0", 500*time.Millisecond)
	turn := s.DoString(t, "GET", fairTurn)
	for i := range 3 {
		endBudget(t, s, fmt.Sprintf("dead:%d", i))
		require.LessOrEqual(t, ask(t, c, first).Nap, 500*time.Millisecond)
		require.Equal(t, turn, s.DoString(t, "GET", fairTurn), "the turn is shared")
	}
	endTurn(t, s)
	require.Nil(t, ask(t, c, first))
	require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
}

func TestWaitersOfAClientThatHangsShareATurnThoughTheirBudgetsEndOneAfterTheOther(t *testing.T) {
	s, c := queued(t)
	for i := range 4 {
		request(t, c, fmt.Sprintf("hung:%d", i), time.Hour, time.Time{})
		subscribe(t, s, "SUBSCRIBE", fairChannel+fmt.Sprintf("hung:%d", i))
	}
	ask(t, c, first)
	leave(t, c, other)
	requireTurn(t, s, "hung:0", 10*time.Second)
	turn := s.DoString(t, "GET", fairTurn)
	endBudget(t, s, "hung:0")
	require.Equal(t, "hung:1", ask(t, c, first).Owner)
	require.Equal(t, turn, s.DoString(t, "GET", fairTurn))
	endTurn(t, s)
	holder := ask(t, c, first)
	require.Equal(t, "hung:2", holder.Owner, "its client has used up its ten seconds")
	require.LessOrEqual(t, holder.Nap, 500*time.Millisecond)
	endBudget(t, s, "hung:2")
	endTurn(t, s)
	require.Nil(t, ask(t, c, first))
}

func TestHeadWhoseSiblingLeavesProperlyHasATurnOfItsOwn(t *testing.T) {
	s, c := queued(t)
	for i := range 2 {
		request(t, c, fmt.Sprintf("alive:%d", i), time.Hour, time.Time{})
		subscribe(t, s, "SUBSCRIBE", fairChannel+fmt.Sprintf("alive:%d", i))
	}
	ask(t, c, first)
	leave(t, c, other)
	endBudget(t, s, "alive:0")
	endTurn(t, s)
	leave(t, c, "alive:0")
	requireTurn(t, s, "alive:1", 10*time.Second)
	requireQueue(t, s, "alive:1", first)
}

func TestBudgetIsCorrectedByTheNextRequest(t *testing.T) {
	s, c := queued(t)
	request(t, c, first, time.Hour, time.Time{})
	ask(t, c, second)
	endBudget(t, s, first) // as if the clock had been set
	request(t, c, first, time.Hour, time.Time{})
	requireQueue(t, s, first, second)
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
			s, c := queued(t)
			request(t, c, first, 10*time.Hour, time.Time{})
			drop(t, s)
			leave(t, c, first)
			leave(t, c, other)
			require.Zero(t, s.DoInt(t, "DBSIZE"))
		})
	}
}
