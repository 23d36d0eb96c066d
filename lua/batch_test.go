package lua_test

import (
	"math"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

// The locks of a batch.
const (
	north  = "account:1"
	middle = "account:2"
	south  = "account:3"
)

// requireBatch acquires a batch, which must succeed.
func requireBatch(
	t *testing.T, c rueidis.CoreClient, lease time.Duration, requests ...lua.BatchPart,
) {
	t.Helper()
	index, holder, err := lua.AcquireBatch(t.Context(), c, lease, requests)
	require.NoError(t, err)
	require.Equal(t, -1, index)
	require.Nil(t, holder)
}

func TestBatchTakesEachFreeLockForItsOwner(t *testing.T) {
	s, c := start(t)
	requireBatch(t, c, lease, lua.BatchPart{Lock: north, Owner: me, Count: 1},
		lua.BatchPart{Lock: middle, Owner: other, Count: 3})
	requireLock(t, s, north, map[string]string{me: "1"}, lease)
	requireLock(t, s, middle, map[string]string{other: "3"}, lease)
	require.EqualValues(t, 2, s.DoInt(t, "DBSIZE"))
}

func TestEmptyBatchTakesNothing(t *testing.T) {
	s, c := start(t)
	requireBatch(t, c, lease)
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}

func TestBatchTakesNothingWhenOneLockIsHeld(t *testing.T) {
	for name, left := range map[string]time.Duration{
		"with a lease": lease, "without expiry": lua.NoExpiry,
	} {
		for index := range 3 {
			t.Run(name, func(t *testing.T) {
				s, c := start(t)
				locks := []string{north, middle, south}
				hold(t, s, locks[index], other, "2", left)
				var requests []lua.BatchPart
				for _, lock := range locks {
					requests = append(requests, lua.BatchPart{Lock: lock, Owner: me, Count: 1})
				}
				got, holder, err := lua.AcquireBatch(t.Context(), c, 3*lease, requests)
				require.NoError(t, err)
				require.Equal(t, index, got)
				require.NotNil(t, holder)
				require.Equal(t, other, holder.Owner)
				require.InDelta(t, left, holder.TTL, float64(5*time.Second))
				require.False(t, holder.Next)
				require.Zero(t, holder.Nap)
				requireLock(t, s, locks[index], map[string]string{other: "2"}, left)
				require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"), "the others are free")
			})
		}
	}
}

func TestBatchTakenTwiceLeavesTheCountsAndLeasesOfOnce(t *testing.T) {
	s, c := start(t)
	hold(t, s, middle, me, "1", lease)
	for range 3 {
		requireBatch(t, c, lease, lua.BatchPart{Lock: north, Owner: me, Count: 1},
			lua.BatchPart{Lock: middle, Owner: me, Count: 2, Nested: true})
		requireLock(t, s, north, map[string]string{me: "1"}, lease)
		requireLock(t, s, middle, map[string]string{me: "2"}, lease)
	}
}

func TestBatchExtendsLeasesAndNeverShortensOne(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "1", lease)
	hold(t, s, middle, me, "1", 5*lease)
	hold(t, s, south, me, "1", lua.NoExpiry)
	requireBatch(t, c, 3*lease, lua.BatchPart{Lock: north, Owner: me, Count: 1},
		lua.BatchPart{Lock: middle, Owner: me, Count: 2, Nested: true},
		lua.BatchPart{Lock: south, Owner: me, Count: 1})
	requireLock(t, s, north, map[string]string{me: "1"}, 3*lease)
	requireLock(t, s, middle, map[string]string{me: "2"}, 5*lease)
	requireLock(t, s, south, map[string]string{me: "1"}, 3*lease)
}

func TestBatchTakesNothingWhenALevelIsForALostLock(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *redistest.Server){
		"free": func(*testing.T, *redistest.Server) {},
		"of another": func(t *testing.T, s *redistest.Server) {
			hold(t, s, middle, other, "1", lease)
		},
		"of readers": func(t *testing.T, s *redistest.Server) {
			s.Do(t, "HSET", middle, "mode", "read", other, "1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			prepare(t, s)
			before := s.DoMap(t, "HGETALL", middle)
			index, holder, err := lua.AcquireBatch(t.Context(), c, lease, []lua.BatchPart{
				{
					Lock:  north,
					Owner: me,
					Count: 1,
				}, {Lock: middle, Owner: me, Count: 2, Nested: true}})
			require.NoError(t, err)
			require.Equal(t, 1, index)
			require.Nil(t, holder)
			requireFree(t, s, north)
			require.Equal(t, before, s.DoMap(t, "HGETALL", middle))
		})
	}
}

func TestBatchTakesNothingWhenAReadWriteLockIsHeld(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", middle, "mode", "read", other, "1")
	index, holder, err := lua.AcquireBatch(t.Context(), c, lease, []lua.BatchPart{
		{Lock: north, Owner: me, Count: 1}, {Lock: middle, Owner: me, Count: 1}})
	require.NoError(t, err)
	require.Equal(t, 1, index)
	require.NotNil(t, holder)
	require.Equal(t, other, holder.Owner, "not its mode")
	requireFree(t, s, north)
}

// Without this check, the lock would be free for both requests.
func TestBatchThatNamesALockTwiceTakesNothing(t *testing.T) {
	s, c := start(t)
	_, _, err := lua.AcquireBatch(t.Context(), c, lease, []lua.BatchPart{
		{
			Lock:  north,
			Owner: me,
			Count: 1,
		}, {Lock: middle, Owner: me, Count: 1}, {Lock: north, Owner: other, Count: 1}})
	e := requireError(t, err, lua.ClassPermanent, "")
	require.Contains(t, e.Message, `"account:1"`)
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}

func TestLeaseOfABatchIsCutToMillisecondsAndMayBeHuge(t *testing.T) {
	s, c := start(t)
	monitor := s.Monitor(t)
	requireBatch(t, c, 1500*time.Millisecond+999*time.Microsecond,
		lua.BatchPart{Lock: north, Owner: me, Count: 1})
	for _, command := range monitor.Commands(t) {
		require.Equal(t, []string{north, "1500", me, "1", "0"}, command[len(command)-5:])
	}
	requireBatch(t, c, math.MaxInt64,
		lua.BatchPart{Lock: north, Owner: me, Count: math.MaxInt32, Nested: true})
	require.Equal(t, "2147483647", s.DoString(t, "HGET", north, me))
	require.InDelta(t, time.Duration(math.MaxInt64).Milliseconds(), s.DoInt(t, "PTTL", north), 5000)
}

func TestBatchMayHaveManyLocks(t *testing.T) {
	s, c := start(t)
	var requests, releases []lua.BatchPart
	for i := range 1000 {
		name := "account:" + ms(time.Duration(i)*time.Millisecond)
		requests = append(requests, lua.BatchPart{Lock: name, Owner: me, Count: 1})
		releases = append(releases, releaseOf(name, me, 0))
	}
	requireBatch(t, c, lease, requests...)
	require.EqualValues(t, 1000, s.DoInt(t, "DBSIZE"))
	parts, err := lua.ReleaseBatch(t.Context(), c, lua.Classic, releases)
	require.NoError(t, err)
	require.Len(t, parts, 1000)
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}
