//go:build redis

package lua_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// uptime returns for how long a server says that it has run, in whole seconds.
func uptime(t *testing.T, s *redistest.Server) time.Duration {
	t.Helper()
	found := regexp.MustCompile(`uptime_in_seconds:(\d+)`).FindStringSubmatch(
		s.DoString(t, "INFO", "server"))
	require.NotNil(t, found)
	seconds, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return time.Duration(seconds) * time.Second
}

func epoch(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	since, err := strconv.ParseInt(s.DoString(t, "GET", wire.EpochKey), 10, 64)
	require.NoError(t, err)
	return since
}

// requireDelayed asserts that a vote was delayed for the restart, until the uptime exceeds the
// delay by a second.
func requireDelayed(t *testing.T, want time.Duration, before, after time.Duration, v lua.Vote) {
	t.Helper()
	require.False(t, v.Granted)
	require.Nil(t, v.Holder)
	require.False(t, v.Emptied)
	require.LessOrEqual(t, v.Delayed, want+time.Second-before)
	require.GreaterOrEqual(t, v.Delayed, want+time.Second-after)
}

// The uptime is in whole seconds and may be one too many, so no node counts before it says 2.
func TestNodeIsCountedWhenItRanForTheDelayAndASecond(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	require.Eventually(t, func() bool {
		before := uptime(t, s)
		v := vote(t, c, me, lua.Delay{For: time.Millisecond})
		after := uptime(t, s)
		if v.Granted {
			require.GreaterOrEqual(t, after, 2*time.Second)
			return true
		}
		requireFree(t, s, lock)
		requireDelayed(t, time.Millisecond, before, after, v)
		return false
	}, eventually, 20*time.Millisecond)
	require.True(t, vote(t, c, me, lua.Delay{For: time.Millisecond}).Granted,
		"again, as after a lost reply")
	requireLock(t, s, lock, map[string]string{me: "1"}, lease)
	free := lua.Delay{For: time.Second, Epoch: true}
	ahead := serverTime(t, s) + time.Hour.Milliseconds()
	s.Do(t, "SET", wire.EpochKey, decimal(ahead))
	s.Do(t, "DEL", lock)
	require.Equal(t, lua.Vote{Delayed: time.Second, Emptied: true}, vote(t, c, me, free),
		"an epoch of the future begins anew")
	require.LessOrEqual(t, epoch(t, s), serverTime(t, s))
	requireFree(t, s, lock)
}

// INFO costs a server more than all other commands of the script together.
func TestNodeIsAskedForItsUptimeOnlyAfterARecentStartOrSave(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	usual := 0
	if c.Do(t.Context(), c.B().Lastsave().Build()).Error() != nil || redistest.ScriptsLack("TIME") {
		usual = 1
	}
	d := lua.Delay{For: time.Millisecond}
	asked := func() int {
		before := s.CommandStats(t)["info"]
		require.True(t, vote(t, c, me, d).Granted)
		return s.CommandStats(t)["info"] - before - 1 // that of CommandStats
	}
	require.Eventually(t, func() bool { return uptime(t, s) >= 3*time.Second }, eventually,
		20*time.Millisecond)
	require.Equal(t, usual, asked())
	require.Eventually(t, func() bool { // two seconds later a save is not recent any more
		s.Do(t, "SAVE")
		return asked() == 1
	}, eventually, poll)
	d.For = time.Hour
	require.False(t, vote(t, c, other, d).Granted)
	require.False(t, vote(t, c, me, d).Granted, "neither says that the server has been up for long")
}

func TestNodeIsNotCountedForTheDelaySinceItsDataIsKnown(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	d := lua.Delay{For: time.Hour, Epoch: true, Durable: true} // the restart does not count
	for range 2 {                                              // its data is dropped in between
		begin := serverTime(t, s)
		require.Equal(t, lua.Vote{Delayed: time.Hour, Emptied: true}, vote(t, c, me, d))
		since := epoch(t, s)
		require.GreaterOrEqual(t, since, begin)
		require.LessOrEqual(t, since, serverTime(t, s))
		requireTTL(t, s, wire.EpochKey, wire.NoExpiry)

		v := vote(t, c, other, d) // by another owner
		passed := time.Duration(serverTime(t, s)-since) * time.Millisecond
		require.True(t, v.Emptied)
		require.LessOrEqual(t, v.Delayed, time.Hour)
		require.GreaterOrEqual(t, v.Delayed, time.Hour-passed)
		require.Equal(t, since, epoch(t, s), "the epoch does not begin anew")
		requireFree(t, s, lock)

		// After the delay it is counted, unless it was started too recently.
		s.Do(t, "SET", wire.EpochKey, decimal(since-time.Hour.Milliseconds()))
		before := uptime(t, s)
		v = vote(t, c, me, lua.Delay{For: time.Hour, Epoch: true})
		requireDelayed(t, time.Hour, before, uptime(t, s), v)
		require.True(t, vote(t, c, me, d).Granted)
		s.Do(t, "FLUSHALL")
	}
}
