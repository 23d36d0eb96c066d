package lua_test

import (
	"strconv"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// counter is the key of the number of the last acquisition of the fenced lock called lock.
const counter = "redisson_lock_token:{order:42}"

// takeFenced takes a fenced lock that is free or the owner's, and returns its token.
func takeFenced(t *testing.T, c rueidis.CoreClient, owner string) int64 {
	t.Helper()
	token, holder, err := lockFenced(t.Context(), c, owner, lease)
	require.NoError(t, err)
	require.Nil(t, holder)
	return token
}

func free(t *testing.T, c rueidis.CoreClient, owner string) {
	t.Helper()
	out, err := unlock(t.Context(), c, lock, owner, 0)
	require.NoError(t, err)
	require.True(t, out.Held)
}

func TestFencedLockIsNumberedFromOneInAKeyThatNeverExpires(t *testing.T) {
	s, c := start(t)
	require.EqualValues(t, 1, takeFenced(t, c, me))
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	require.Equal(t, "1", s.DoString(t, "GET", counter))
	requireTTL(t, s, counter, lua.NoExpiry)
	require.EqualValues(t, 2, s.DoInt(t, "DBSIZE"))
}

func TestTokenGrowsByOneHoweverTheLockBecameFree(t *testing.T) {
	s, c := start(t)
	token := takeFenced(t, c, me)
	for name, leave := range map[string]func(){
		"release": func() { free(t, c, me) },
		"force unlock": func() {
			out, err := plain.ForceUnlock(t.Context(), c, lua.Classic)
			require.NoError(t, err)
			require.True(t, out.Held)
		},
		"expiry": func() {
			s.Do(t, "PEXPIRE", lock, "1")
			require.Eventually(t, func() bool { return !has(s, lock) }, eventually, poll)
		},
		"another program's DEL": func() { s.Do(t, "DEL", lock) },
		"flush of the scripts":  func() { s.Do(t, "SCRIPT", "FLUSH"); free(t, c, me) },
	} {
		leave()
		requireFree(t, s, lock)
		require.Equal(t, strconv.FormatInt(token, 10), s.DoString(t, "GET", counter), name)
		requireTTL(t, s, counter, lua.NoExpiry)
		next := takeFenced(t, c, me)
		require.Equal(t, token+1, next, name)
		token = next
	}
}

func has(s *redistest.Server, key string) bool {
	reply, err := s.Call("EXISTS", key)
	return err != nil || reply == int64(1)
}

func TestRetriedFencedAcquireKeepsItsToken(t *testing.T) {
	s, c := start(t)
	takeFenced(t, c, other)
	free(t, c, other)
	token := takeFenced(t, c, me)
	for range 3 {
		require.Equal(t, token, takeFenced(t, c, me))
	}
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	require.Equal(t, strconv.FormatInt(token, 10), s.DoString(t, "GET", counter))
}

// Redisson counts its nested acquisitions as well.
func TestTokenContinuesFromTheCountOfAnotherProgram(t *testing.T) {
	s, c := start(t)
	token := takeFenced(t, c, me)
	free(t, c, me)
	hold(t, s, lock, other, "2", lease)
	s.Do(t, "INCRBY", counter, "2")
	s.Do(t, "DEL", lock)
	require.Equal(t, token+3, takeFenced(t, c, me))
}

func TestOwnersFencedLockWithoutACounterGetsANumber(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", lease)
	require.EqualValues(t, 1, takeFenced(t, c, me))
	require.EqualValues(t, 1, takeFenced(t, c, me))
}

// An operator who lost the counter may well begin again with the time in nanoseconds, which a
// double cannot represent exactly.
func TestTokensBeyondTheNumbersOfLuaAreExact(t *testing.T) {
	s, c := start(t)
	const begin = int64(1_790_000_000_000_000_001)
	s.Do(t, "SET", counter, strconv.FormatInt(begin, 10))
	for i := int64(1); i <= 3; i++ {
		require.Equal(t, begin+i, takeFenced(t, c, me))
		require.Equal(t, begin+i, takeFenced(t, c, me), "repeated")
		state, err := lua.InspectFenced(t.Context(), c, lock)
		require.NoError(t, err)
		require.Equal(t, begin+i, state.Token)
		free(t, c, me)
	}
}

func TestFencedLockOfAnotherIsRefusedAndNotNumbered(t *testing.T) {
	for name, left := range map[string]string{"with a lease": "30000", "without expiry": "-1"} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			s.Do(t, "HSET", lock, other, "3")
			if left != "-1" {
				s.Do(t, "PEXPIRE", lock, left)
			}
			s.Do(t, "SET", counter, "7")
			_, holder, err := lockFenced(t.Context(), c, me, lease)
			require.NoError(t, err)
			require.Equal(t, other, holder.Owner)
			require.Zero(t, holder.Nap)
			if left == "-1" {
				require.Equal(t, lua.NoExpiry, holder.TTL)
			}
			require.Equal(t, map[string]string{other: "3"}, s.DoMap(t, "HGETALL", lock))
			require.Equal(t, "7", s.DoString(t, "GET", counter))
		})
	}
}

func TestHolderWhoseCounterIsNoNumberGetsAnErrorAndNoToken(t *testing.T) {
	s, c := start(t)
	takeFenced(t, c, me)
	s.Do(t, "SET", counter, "a page")
	_, holder, err := lockFenced(t.Context(), c, me, lease)
	require.Nil(t, holder)
	e := new(lua.Error)
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Advice, counter)
	require.Equal(t, lua.ClassUnknown, e.Class, "the owner holds the lock, which must be undone")
}

func TestFencedAcquireOnAKeyThatIsNoLockDoesNotCount(t *testing.T) {
	s, c := start(t)
	s.Do(t, "SET", lock, "a page")
	_, _, err := lockFenced(t.Context(), c, me, lease)
	requireError(t, err, lua.ClassPermanent, "WRONGTYPE")
	require.Equal(t, "a page", s.DoString(t, "GET", lock))
	require.False(t, has(s, counter))
}

func TestInspectFencedReturnsTheLastToken(t *testing.T) {
	s, c := start(t)
	state, err := lua.InspectFenced(t.Context(), c, lock)
	require.NoError(t, err)
	require.Equal(t, lua.State{}, state)
	takeFenced(t, c, me)
	free(t, c, me)
	takeFenced(t, c, other)
	state, err = lua.InspectFenced(t.Context(), c, lock)
	require.NoError(t, err)
	require.EqualValues(t, 2, state.Token)
	require.Equal(t, []lua.Hold{{Owner: other, Count: 1}}, state.Holds)
	free(t, c, other)
	state, err = lua.InspectFenced(t.Context(), c, lock)
	require.NoError(t, err)
	require.Equal(t, lua.State{Token: 2}, state)

	s.Do(t, "SET", counter, "a page")
	_, err = lua.InspectFenced(t.Context(), c, lock)
	e := new(lua.Error)
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Advice, counter)
}
