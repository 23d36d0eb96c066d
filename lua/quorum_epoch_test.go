package lua_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

var uptimeLine = regexp.MustCompile(`uptime_in_seconds:(\d+)`)

// startAged returns a server and a client. The server has run long enough for a delay of a second
// not to count its restart.
func startAged(t *testing.T) (*redistest.Server, rueidis.Client) {
	t.Helper()
	s, c := start(t)
	require.Eventually(t, func() bool { return uptime(t, s) >= 2*time.Second }, eventually,
		20*time.Millisecond)
	return s, c
}

func epoch(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	since, err := strconv.ParseInt(s.DoString(t, "GET", lua.EpochKey), 10, 64)
	require.NoError(t, err)
	return since
}

func TestNodeWithOldDataIsCountedAndOneWhoseDataWasDroppedIsNot(t *testing.T) {
	t.Parallel()
	s, c := startAged(t)
	d := lua.Delay{For: time.Second, Epoch: true}
	s.Do(t, "SET", lua.EpochKey, strconv.FormatInt(serverTime(t, s)-1000, 10))
	require.Equal(t, lua.Vote{Granted: true}, vote(t, c, me, d))
	s.Do(t, "FLUSHALL")
	require.Equal(t, lua.Vote{Delayed: time.Second, Emptied: true}, vote(t, c, other, d))
	requireFree(t, s, lock)
	require.True(t, vote(t, c, other, lua.Delay{For: time.Second}).Granted,
		"a vote without epoch is not delayed")
}

func TestNewNodeIsCountedWhenTheDelayIsOver(t *testing.T) {
	t.Parallel()
	s, c := start(t)
	d := lua.Delay{For: 50 * time.Millisecond, Epoch: true}
	require.Eventually(t, func() bool { return vote(t, c, me, d).Granted }, eventually, poll)
	require.GreaterOrEqual(t, serverTime(t, s)-epoch(t, s), int64(50))
}

func TestEpochOfTheFutureBeginsAnew(t *testing.T) {
	t.Parallel()
	s, c := startAged(t)
	s.Do(t, "SET", lua.EpochKey, strconv.FormatInt(serverTime(t, s)+time.Hour.Milliseconds(), 10))
	require.Equal(t, lua.Vote{Delayed: time.Second, Emptied: true},
		vote(t, c, me, lua.Delay{For: time.Second, Epoch: true}))
	require.LessOrEqual(t, epoch(t, s), serverTime(t, s))
	requireFree(t, s, lock)
}

func TestEpochOfAnotherProgramIsAnErrorAndStays(t *testing.T) {
	s, c := start(t)
	for _, garbage := range []string{
		"a page", "", "-5", "1e3", "0x10", "inf", "nan", "1790000000000 ", "1790000000000\n",
	} {
		s.Do(t, "SET", lua.EpochKey, garbage)
		_, err := lua.AcquireVote(t.Context(), c, lock, me, lease, lua.Delay{For: 1, Epoch: true})
		e := requireError(t, err, lua.ClassPermanent, "NOEPOCH")
		require.Contains(t, e.Advice, "something else writes to the key "+lua.EpochKey)
		require.Equal(t, garbage, s.DoString(t, "GET", lua.EpochKey))
	}
	s.Do(t, "DEL", lua.EpochKey)
	s.Do(t, "RPUSH", lua.EpochKey, "a")
	_, err := lua.AcquireVote(t.Context(), c, lock, me, lease, lua.Delay{For: 1, Epoch: true})
	requireError(t, err, lua.ClassPermanent, "NOEPOCH")
	requireFree(t, s, lock)
}

func TestZeroDelayDoesNotBeginAnEpoch(t *testing.T) {
	s, c := start(t)
	require.True(t, vote(t, c, me, lua.Delay{Epoch: true}).Granted)
	require.EqualValues(t, 1, s.DoInt(t, "DBSIZE"))
}

// uptime returns for how long a server says that it has run, in whole seconds.
func uptime(t *testing.T, s *redistest.Server) time.Duration {
	t.Helper()
	found := uptimeLine.FindStringSubmatch(s.DoString(t, "INFO", "server"))
	require.NotNil(t, found)
	seconds, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return time.Duration(seconds) * time.Second
}
