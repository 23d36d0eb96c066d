//go:build redis

package lua_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestNodeIsNotCountedForTheDelaySinceItsDataIsKnown(t *testing.T) {
	t.Parallel()
	s, c := startAged(t)
	d := lua.Delay{For: time.Hour, Epoch: true}
	for range 2 { // the second time, its data was dropped before
		begin := serverTime(t, s)
		require.Equal(t, lua.Vote{Delayed: time.Hour, Emptied: true}, vote(t, c, me, d))
		since := epoch(t, s)
		require.GreaterOrEqual(t, since, begin)
		require.LessOrEqual(t, since, serverTime(t, s))
		requireTTL(t, s, lua.EpochKey, lua.NoExpiry)

		v := vote(t, c, other, d) // by another owner
		passed := time.Duration(serverTime(t, s)-since) * time.Millisecond
		require.True(t, v.Emptied)
		require.LessOrEqual(t, v.Delayed, time.Hour)
		require.GreaterOrEqual(t, v.Delayed, time.Hour-passed)
		require.Equal(t, since, epoch(t, s), "the epoch does not begin anew")
		requireFree(t, s, lock)

		// After more than the delay since then the epoch counts, but this node was started too
		// recently.
		s.Do(t, "SET", lua.EpochKey, strconv.FormatInt(since-time.Hour.Milliseconds(), 10))
		before := uptime(t, s)
		v = vote(t, c, me, d)
		requireDelayed(t, time.Hour, before, uptime(t, s), v)
		s.Do(t, "FLUSHALL")
	}
}

func TestDurableNodeIsDelayedForItsEpochOnly(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	d := lua.Delay{For: time.Hour, Epoch: true, Durable: true}
	v := vote(t, c, me, d)
	require.True(t, v.Emptied)
	require.Positive(t, v.Delayed)
	s.Do(t, "SET", lua.EpochKey, "1")
	require.True(t, vote(t, c, me, d).Granted, "the restart does not count")
	require.Positive(t, vote(t, c, me, lua.Delay{For: time.Hour, Epoch: true}).Delayed)
}
