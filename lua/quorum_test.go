package lua_test

import (
	"math"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// undelayed counts a node at once.
var undelayed = lua.Delay{}

// vote returns the vote of a client's node for an owner.
func vote(t *testing.T, c rueidis.CoreClient, owner string, d lua.Delay) lua.Vote {
	t.Helper()
	v, err := lua.AcquireVote(t.Context(), c, lock, owner, lease, d)
	require.NoError(t, err)
	return v
}

func TestVoteForAFreeLockLeavesACountOfOneHoweverOften(t *testing.T) {
	s, c := start(t)
	for i := range 3 {
		require.Equal(t, lua.Vote{Granted: true, Already: i > 0}, vote(t, c, me, undelayed))
		requireLock(t, s, lock, map[string]string{me: "1"}, lease)
		require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
	}
}

func TestVoteOfAnotherOwnersLockNamesTheHolder(t *testing.T) {
	for name, left := range map[string]time.Duration{
		"with a lease": lease, "without expiry": lua.NoExpiry,
	} {
		for how, d := range map[string]lua.Delay{
			"counted": undelayed, "not counted yet": {For: time.Hour, Epoch: true},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				s, c := start(t)
				hold(t, s, lock, other, "3", left)
				v := vote(t, c, me, d)
				require.False(t, v.Granted)
				require.Zero(t, v.Delayed)
				require.NotNil(t, v.Holder)
				require.Equal(t, other, v.Holder.Owner)
				require.InDelta(t, left, v.Holder.TTL, float64(5*time.Second))
				requireLock(t, s, lock, map[string]string{other: "3"}, left)
				require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
			})
		}
	}
}

func TestVoteNeverShortensTheOwnersLease(t *testing.T) {
	s, c := start(t)
	hold(t, s, lock, me, "1", 3*lease)
	require.True(t, vote(t, c, me, undelayed).Granted)
	requireTTL(t, s, lock, 3*lease)
	s.Do(t, "PEXPIRE", lock, "1000")
	require.True(t, vote(t, c, me, undelayed).Granted)
	requireTTL(t, s, lock, lease)
}

func TestLeaseOfAVoteIsCutToMillisecondsAndItsDelayIsNot(t *testing.T) {
	s, c := start(t)
	for d, want := range map[time.Duration]string{
		-time.Hour:                         "0",
		0:                                  "0",
		1:                                  "1",
		time.Second:                        "1000",
		time.Second + 1:                    "1001",
		math.MaxInt64:                      "9223372036855",
		math.MaxInt64 - time.Millisecond:   "9223372036854",
		math.MaxInt64 - 2*time.Millisecond: "9223372036853",
	} {
		monitor := s.Monitor(t)
		_, err := lua.AcquireVote(t.Context(), c, lock, me,
			1500*time.Millisecond+999*time.Microsecond, lua.Delay{For: d})
		require.NoError(t, err)
		for _, command := range monitor.Commands(t) {
			require.Equal(t, []string{"1", lock, me, "1500", want, "0"}, command[len(command)-6:],
				"%d", d)
		}
	}
	v, err := lua.AcquireVote(t.Context(), c, "huge", me, math.MaxInt64, undelayed)
	require.NoError(t, err)
	require.True(t, v.Granted)
	require.InDelta(t, time.Duration(math.MaxInt64).Milliseconds(), s.DoInt(t, "PTTL", "huge"),
		5000)
	v = vote(t, c, other, lua.Delay{For: math.MaxInt64, Epoch: true})
	require.NotNil(t, v.Holder)
	s.Do(t, "DEL", lock)
	v = vote(t, c, me, lua.Delay{For: math.MaxInt64, Epoch: true})
	require.InDelta(t, math.MaxInt64, v.Delayed, float64(10*time.Second))
}
