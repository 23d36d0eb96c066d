package lua_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// vote returns the vote of a client's node for an owner.
func vote(t *testing.T, c client, owner string, d lua.Delay) lua.Vote {
	t.Helper()
	v, err := lua.NewBallot(owner, lease, d).Cast(t.Context(), c, lock)
	require.NoError(t, err)
	return v
}

func TestVoteForAFreeLockLeavesACountOfOneHoweverOften(t *testing.T) {
	s, c := start(t)
	for i := range 3 {
		require.Equal(t, lua.Vote{Granted: true, Already: i > 0}, vote(t, c, me, lua.Delay{}))
		requireLock(t, s, lock, map[string]string{me: "1"}, lease)
		require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
	}
	s.Do(t, "PEXPIRE", lock, ms(longer))
	require.True(t, vote(t, c, me, lua.Delay{}).Granted)
	requireTTL(t, s, lock, longer)
}

func TestVoteOfAnotherOwnersLockNamesTheHolder(t *testing.T) {
	for _, left := range []time.Duration{lease, wire.NoExpiry} {
		for _, d := range []lua.Delay{{}, {For: time.Hour, Epoch: true}} {
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
		}
	}
}

func TestLeaseOfAVoteIsCutToMillisecondsAndItsDelayIsNot(t *testing.T) {
	s, c := start(t)
	monitor := s.Monitor(t)
	for d, want := range map[time.Duration]string{-time.Hour: "0", 0: "0", 1: "1", time.Second: "1000",
		time.Second + 1: "1001", math.MaxInt64: "9223372036855",
		math.MaxInt64 - time.Millisecond: "9223372036854"} {
		odd := 1500*time.Millisecond + 999*time.Microsecond
		_, err := lua.NewBallot(me, odd, lua.Delay{For: d}).Cast(t.Context(), c, lock)
		require.NoError(t, err)
		for _, command := range monitor.Commands(t) {
			require.Equal(t, []string{"1", lock, me, "1500", want, "0"}, command[len(command)-6:], "%d", d)
		}
	}
	v, err := lua.NewBallot(me, math.MaxInt64, lua.Delay{}).Cast(t.Context(), c, "huge")
	require.NoError(t, err)
	require.True(t, v.Granted)
	require.InDelta(t, time.Duration(math.MaxInt64).Milliseconds(), s.DoInt(t, "PTTL", "huge"), 5000)
	s.Do(t, "DEL", lock)
	v = vote(t, c, me, lua.Delay{For: math.MaxInt64, Epoch: true})
	require.InDelta(t, math.MaxInt64, v.Delayed, float64(10*time.Second))
}

func TestEpochOfAnotherProgramIsAnErrorAndStays(t *testing.T) {
	s, c := start(t)
	refused := func() {
		t.Helper()
		before := everything(t, s)
		_, err := lua.NewBallot(me, lease, lua.Delay{For: 1, Epoch: true}).Cast(t.Context(), c, lock)
		e := requireError(t, err, rediserr.ClassPermanent, "NOEPOCH")
		require.Contains(t, e.Advice, "something else writes to the key "+wire.EpochKey)
		require.Equal(t, before, everything(t, s))
	}
	for _, garbage := range []string{"a page", "", "-5", "1e3", "0x10", "inf", "nan", "1790000000000 ",
		"1790000000000\n"} {
		s.Do(t, "SET", wire.EpochKey, garbage)
		refused()
	}
	s.Do(t, "DEL", wire.EpochKey)
	s.Do(t, "RPUSH", wire.EpochKey, "a")
	refused()
}
