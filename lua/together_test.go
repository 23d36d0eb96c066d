package lua_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestFreeLocksAreTakenTogetherEachForItsOwner(t *testing.T) {
	s, c := start(t)
	requireTogether(t, c, lease, lua.Taking{Lock: north, Owner: me, Count: 1}, lua.Taking{Lock: middle, Owner: other, Count: 3})
	requireLock(t, s, north, map[string]string{me: "1"}, lease)
	requireLock(t, s, middle, map[string]string{other: "3"}, lease)
	require.EqualValues(t, 2, s.DoInt(t, "DBSIZE"))
}

func TestNoLocksAreTakenTogether(t *testing.T) {
	s, c := start(t)
	requireTogether(t, c, lease)
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}

func TestOneLockInTheWayKeepsAllFromBeingTaken(t *testing.T) {
	for name, left := range map[string]time.Duration{"with a lease": lease, "without expiry": lua.NoExpiry} {
		for index := range 3 {
			t.Run(name, func(t *testing.T) {
				s, c := start(t)
				locks := []string{north, middle, south}
				hold(t, s, locks[index], other, "2", left)
				var takings []lua.Taking
				for _, lock := range locks {
					takings = append(takings, lua.Taking{Lock: lock, Owner: me, Count: 1})
				}
				got, holder, err := lua.AcquireTogether(t.Context(), c, 3*lease, takings)
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

func TestLocksTakenTogetherAgainHaveTheCountsAndLeasesOfOnce(t *testing.T) {
	s, c := start(t)
	hold(t, s, middle, me, "1", lease)
	for range 3 {
		requireTogether(t, c, lease, lua.Taking{Lock: north, Owner: me, Count: 1},
			lua.Taking{Lock: middle, Owner: me, Count: 2, Nested: true})
		requireLock(t, s, north, map[string]string{me: "1"}, lease)
		requireLock(t, s, middle, map[string]string{me: "2"}, lease)
	}
}

func TestTakingTogetherLengthensALeaseAndNeverShortensIt(t *testing.T) {
	s, c := start(t)
	hold(t, s, north, me, "1", lease)
	hold(t, s, middle, me, "1", 5*lease)
	hold(t, s, south, me, "1", lua.NoExpiry)
	requireTogether(t, c, 3*lease, lua.Taking{Lock: north, Owner: me, Count: 1},
		lua.Taking{Lock: middle, Owner: me, Count: 2, Nested: true}, lua.Taking{Lock: south, Owner: me, Count: 1})
	requireLock(t, s, north, map[string]string{me: "1"}, 3*lease)
	requireLock(t, s, middle, map[string]string{me: "2"}, 5*lease)
	requireLock(t, s, south, map[string]string{me: "1"}, 3*lease)
}

func TestLevelOfALostLockKeepsAllFromBeingTaken(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *redistest.Server){
		"free":         func(*testing.T, *redistest.Server) {},
		"of another":   func(t *testing.T, s *redistest.Server) { hold(t, s, middle, other, "1", lease) },
		"of two sides": func(t *testing.T, s *redistest.Server) { s.Do(t, "HSET", middle, "mode", "read", other, "1") },
	} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			prepare(t, s)
			before := s.DoMap(t, "HGETALL", middle)
			index, holder, err := lua.AcquireTogether(t.Context(), c, lease, []lua.Taking{
				{Lock: north, Owner: me, Count: 1}, {Lock: middle, Owner: me, Count: 2, Nested: true}})
			require.NoError(t, err)
			require.Equal(t, 1, index)
			require.Nil(t, holder)
			requireFree(t, s, north)
			require.Equal(t, before, s.DoMap(t, "HGETALL", middle))
		})
	}
}

func TestReadWriteLockIsInTheWayOfTakingTogether(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", middle, "mode", "read", other, "1")
	index, holder, err := lua.AcquireTogether(t.Context(), c, lease, []lua.Taking{
		{Lock: north, Owner: me, Count: 1}, {Lock: middle, Owner: me, Count: 1}})
	require.NoError(t, err)
	require.Equal(t, 1, index)
	require.NotNil(t, holder)
	require.Equal(t, other, holder.Owner, "and not its mode")
	requireFree(t, s, north)
}

// It would be free for both of them.
func TestLockThatIsNamedTwiceIsTakenForNobody(t *testing.T) {
	s, c := start(t)
	_, _, err := lua.AcquireTogether(t.Context(), c, lease, []lua.Taking{
		{Lock: north, Owner: me, Count: 1}, {Lock: middle, Owner: me, Count: 1}, {Lock: north, Owner: other, Count: 1}})
	e := requireError(t, err, lua.Permanent, "")
	require.Contains(t, e.Message, `"account:1"`)
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}

func TestLeaseOfLocksTakenTogetherIsCutToMillisecondsAndMayBeHuge(t *testing.T) {
	s, c := start(t)
	monitor := s.Monitor(t)
	requireTogether(t, c, 1500*time.Millisecond+999*time.Microsecond, lua.Taking{Lock: north, Owner: me, Count: 1})
	for _, command := range monitor.Commands(t) {
		require.Equal(t, []string{north, "1500", me, "1", "0"}, command[len(command)-5:])
	}
	requireTogether(t, c, math.MaxInt64, lua.Taking{Lock: north, Owner: me, Count: math.MaxInt32, Nested: true})
	require.Equal(t, "2147483647", s.DoString(t, "HGET", north, me))
	require.InDelta(t, time.Duration(math.MaxInt64).Milliseconds(), s.DoInt(t, "PTTL", north), 5000)
}

func TestManyLocksAreTakenAndReleasedTogether(t *testing.T) {
	s, c := start(t)
	var takings []lua.Taking
	var leavings []lua.Leaving
	for i := range 1000 {
		name := "account:" + ms(time.Duration(i)*time.Millisecond)
		takings = append(takings, lua.Taking{Lock: name, Owner: me, Count: 1})
		leavings = append(leavings, lua.Leaving{Lock: name, Owner: me, Announcement: announcement})
	}
	requireTogether(t, c, lease, takings...)
	require.EqualValues(t, 1000, s.DoInt(t, "DBSIZE"))
	parts, err := lua.ReleaseTogether(t.Context(), c, leavings)
	require.NoError(t, err)
	require.Len(t, parts, 1000)
	require.Zero(t, s.DoInt(t, "DBSIZE"))
}

func TestLocksOfOneSlotAreTakenAndReleasedTogetherOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := cluster.Client(t)
	node := cluster.Owner(t, cluster.Slot(t, "{bank}:1"))
	var takings []lua.Taking
	var leavings []lua.Leaving
	for _, lock := range []string{"{bank}:1", "{bank}:2"} {
		takings = append(takings, lua.Taking{Lock: lock, Owner: me, Count: 1})
		l := leaving(lock, me, 0)
		l.Announcement.Sharded = true
		leavings = append(leavings, l)
	}
	requireTogether(t, c, lease, takings...)
	requireLock(t, node, "{bank}:2", map[string]string{me: "1"}, lease)
	if !knowsShardedChannels(t, node) { // nobody is told, and the locks are free all the same
		for _, part := range releaseTogether(t, c, leavings...) {
			require.NoError(t, part.Err)
			require.True(t, part.Held)
			require.Contains(t, part.Refusal, "Unknown Redis command")
		}
		require.Zero(t, node.DoInt(t, "DBSIZE"))
		return
	}
	sub := subscribe(t, node, "SSUBSCRIBE", lua.Channel("{bank}:2"))
	parts := releaseTogether(t, c, leavings...)
	require.Equal(t, []lua.PartReleased{gone, gone}, parts)
	requireFree(t, node, "{bank}:1")
	sub.requireBytes(t, array("smessage", lua.Channel("{bank}:2"), "0"))
}
