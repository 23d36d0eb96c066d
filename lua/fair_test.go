package lua_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// The fair lock under test, its keys and its waiters' channels.
const (
	fairQueue   = "redisson_lock_queue:{order:42}"
	fairScores  = "redisson_lock_timeout:{order:42}"
	fairTurn    = "holdfast_lock_turn:{order:42}"
	fairChannel = "redisson_lock__channel:{order:42}:" // an owner follows
	fairWindow  = time.Minute
)

var fair = lua.Fair{Lock: lock, Counted: true}

// The waiters' owners, in the order in which most tests queue them.
const (
	first  = "5f5d0cf4-0c2c-4a6a-9f2e-6f2a2b1d7e01:1"
	second = "5f5d0cf4-0c2c-4a6a-9f2e-6f2a2b1d7e02:2"
	third  = "5f5d0cf4-0c2c-4a6a-9f2e-6f2a2b1d7e03:3"
)

// ask has a waiting owner ask once, with fairWindow, and returns the holder.
func ask(t *testing.T, c rueidis.Client, owner string) *lua.Holder {
	t.Helper()
	holder, err := fair.Acquire(t.Context(), c,
		lua.FairRequest{Owner: owner, Count: 1, Lease: lease, Waits: true, Window: fairWindow})
	require.NoError(t, err)
	return holder
}

// askOnce has an owner ask that does not wait.
func askOnce(t *testing.T, c rueidis.Client, owner string) *lua.Holder {
	t.Helper()
	holder, err := fair.Acquire(t.Context(), c,
		lua.FairRequest{Owner: owner, Count: 1, Lease: lease, Waits: false, Window: fairWindow})
	require.NoError(t, err)
	return holder
}

// leave has an owner give up the lock or its place in the queue.
func leave(t *testing.T, c rueidis.Client, owner string) lua.Released {
	t.Helper()
	out, err := fair.Release(t.Context(), c, 0, owner)
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

// requireHolder asserts who holds the lock.
func requireHolder(t *testing.T, s *redistest.Server, owner string) {
	t.Helper()
	requireLock(t, s, lock, map[string]string{owner: "1"}, lease)
}

func TestFreeFairLockIsTakenAndLeavesOnlyItsKey(t *testing.T) {
	for name, take := range map[string]func(*testing.T, rueidis.Client, string) *lua.Holder{
		"waiting": ask, "once": askOnce,
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			require.Nil(t, take(t, c, me))
			requireHolder(t, s, me)
			require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
			require.Equal(t, lua.Released{Held: true}, leave(t, c, me))
			require.Zero(t, s.DoInt(t, "DBSIZE"))
		})
	}
}

func TestFairLockGoesToWaitersInTheOrderOfTheirFirstRequests(t *testing.T) {
	s, c := queued(t, first, second, third)
	for _, owner := range []string{third, second, first} { // requests do not change the order
		require.Equal(t, other, ask(t, c, owner).Owner)
	}
	requireQueue(t, s, first, second, third)
	s.Do(t, "DEL", lock)
	waiting := []string{first, second, third}
	for i, owner := range waiting {
		for _, later := range waiting[i+1:] {
			holder := ask(t, c, later)
			require.Equal(t, owner, holder.Owner)
			require.True(t, holder.Next)
			require.Positive(t, holder.Nap)
		}
		require.Nil(t, ask(t, c, owner))
		requireHolder(t, s, owner)
		require.True(t, leave(t, c, owner).Held)
	}
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}

func TestFairReleaseTellsTheHeadOfTheQueueAlone(t *testing.T) {
	s, c := queued(t, first, second)
	subs := map[string]subscriber{}
	for _, owner := range []string{first, second} {
		subs[owner] = subscribe(t, s, "SUBSCRIBE", fairChannel+owner)
	}
	everybody := subscribe(t, s, "SUBSCRIBE", lockChannel)
	for _, owner := range []string{first, second} {
		require.True(t, leave(t, c, s.DoStrings(t, "HKEYS", lock)[0]).Held)
		subs[owner].requireBytes(t, array("message", fairChannel+owner, "0"))
		require.Nil(t, ask(t, c, owner))
	}
	for _, sub := range subs {
		sub.requireNothing(t)
	}
	everybody.requireNothing(t)
}

func TestFairLockWithoutWaitNeitherQueuesNorOvertakes(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lease)
	require.Equal(t, other, askOnce(t, c, me).Owner)
	require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
	ask(t, c, first)
	s.Do(t, "DEL", lock)
	holder := askOnce(t, c, me)
	require.Equal(t, first, holder.Owner)
	require.True(t, holder.Next)
	requireFree(t, s, lock)
	requireQueue(t, s, first)
}

func TestOwnerOfAFairLockNeedNotQueueForIt(t *testing.T) {
	s, c := queued(t, first)
	require.Nil(t, ask(t, c, other))
	requireHolder(t, s, other)
	requireQueue(t, s, first)
}

func TestFairLockWithoutExpiryIsHeld(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, other, "1", lua.NoExpiry)
	for range 2 {
		holder := ask(t, c, first)
		require.Equal(t, &lua.Holder{Owner: other, TTL: lua.NoExpiry, Clock: holder.Clock}, holder)
		holder = ask(t, c, second)
		require.Equal(t,
			&lua.Holder{Owner: other, TTL: lua.NoExpiry, Nap: lua.MaxNap, Clock: holder.Clock},
			holder)
	}
	requireQueue(t, s, first, second)
}

func TestPartialFairReleaseTellsNobody(t *testing.T) {
	s, c := queued(t, first)
	s.Do(t, "HSET", lock, other, "2")
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+first)
	out, err := fair.Release(t.Context(), c, 1, other)
	require.NoError(t, err)
	require.True(t, out.Held)
	requireHolder(t, s, other)
	out, err = fair.Release(t.Context(), c, 1, me)
	require.NoError(t, err)
	require.False(t, out.Held)
	sub.requireNothing(t)
}

func TestForceUnlockOfAFairLockTellsTheHeadOfTheQueue(t *testing.T) {
	s, c := queued(t, first, second)
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+first)
	for _, held := range []bool{true, false} {
		out, err := fair.ForceUnlock(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, lua.Released{Held: held}, out)
		requireFree(t, s, lock)
		requireQueue(t, s, first, second)
		sub.requireBytes(t, array("message", fairChannel+first, "0"))
	}
}

func TestForceUnlockOfAFairLockDropsStaleHeads(t *testing.T) {
	s, c := queued(t, first, second)
	s.Do(t, "ZADD", fairScores, "1", first)
	sub := subscribe(t, s, "SUBSCRIBE", fairChannel+second)
	_, err := fair.ForceUnlock(t.Context(), c)
	require.NoError(t, err)
	requireQueue(t, s, second)
	sub.requireBytes(t, array("message", fairChannel+second, "0"))
}

// After a lost reply the command is sent again. It must not undo what another client did between.
func TestFairScriptRunTwiceChangesNothingMore(t *testing.T) {
	for name, run := range map[string]func(*testing.T, *redistest.Server, rueidis.Client) func(){
		"queueing": func(t *testing.T, s *redistest.Server, c rueidis.Client) func() {
			s.Do(t, "PERSIST", lock) // or the head's score would be moved
			return func() { ask(t, c, me) }
		},
		"request": func(t *testing.T, s *redistest.Server, c rueidis.Client) func() {
			s.Do(t, "DEL", lock)
			return func() { require.Nil(t, ask(t, c, first)) }
		},
		"leaving as the head": func(t *testing.T, _ *redistest.Server, c rueidis.Client) func() {
			return func() { leave(t, c, first) }
		},
		"leaving from the middle": func(t *testing.T, _ *redistest.Server, c rueidis.Client) func() {
			return func() { leave(t, c, second) }
		},
		"leaving a free lock": func(t *testing.T, s *redistest.Server, c rueidis.Client) func() {
			s.Do(t, "DEL", lock)
			return func() { leave(t, c, first) }
		},
		"releasing": func(t *testing.T, _ *redistest.Server, c rueidis.Client) func() {
			return func() { leave(t, c, other) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := queued(t, first, second, third)
			twice := run(t, s, c)
			twice()
			before := fairState(t, s)
			twice()
			require.Equal(t, before, fairState(t, s))
		})
	}
}

// fairState returns all that Redis knows of the lock but its TTL.
func fairState(t *testing.T, s *redistest.Server) map[string]any {
	t.Helper()
	return map[string]any{
		"lock":   s.DoMap(t, "HGETALL", lock),
		"queue":  s.DoStrings(t, "LRANGE", fairQueue, "0", "-1"),
		"scores": s.DoMap(t, "ZRANGE", fairScores, "0", "-1", "WITHSCORES"),
		"turn":   s.DoString(t, "GET", fairTurn),
	}
}

func TestInspectFairShowsTheQueueAndChangesNothing(t *testing.T) {
	s, c := queued(t, first, second)
	s.Do(t, "ZADD", fairScores, "1", first) // a stale head is shown, too
	before := fairState(t, s)
	state, err := lua.InspectFair(t.Context(), c, lock)
	require.NoError(t, err)
	require.Equal(t, []lua.Hold{{Owner: other, Count: 1}}, state.Holds)
	require.Equal(t, []string{first, second}, state.Queue)
	require.InDelta(t, lease, state.TTL, float64(5*time.Second))
	require.Equal(t, before, fairState(t, s))
}
