package survey_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/redistest"
	"holdfast/internal/survey"
	"holdfast/internal/wire"
	"holdfast/lua"
)

// Owners as clients name them: only those make a hash one of a lock.
const (
	thread  = "8743c9c0-0795-4907-87fd-6c719a6b4586:54"
	another = "11112222-3333-4444-8555-666677778888:-1"
)

func surveyOf(t *testing.T, c rueidis.CoreClient, name string) survey.Survey {
	t.Helper()
	s := survey.NewSurveyor(c, false).Survey(t.Context(), name)[0]
	require.NoError(t, s.Err)
	return s
}

func TestSurveyTellsTheKindOfALock(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	now := time.Now()
	s.Do(t, "HSET", "plain", thread, "2")
	s.Do(t, "ZADD", "holdfast_lock_waiters:{plain}", "1700000000123456", another+" 30000 plain")
	s.Do(t, "HSET", "fenced", thread, "1")
	s.Do(t, "PEXPIRE", "fenced", "30000")
	s.Do(t, "SET", "redisson_lock_token:{fenced}", "9223372036854775807")
	s.Do(t, "RPUSH", "redisson_lock_queue:{fair}", thread, another)
	s.Do(t, "ZADD", "redisson_lock_timeout:{fair}", "1700000000123", thread, "1800000000123", another)
	s.Do(t, "ZADD", "holdfast_lock_budget:{fair}", "1750000000123", another)
	s.Do(t, "HSET", "rw", "mode", "write", thread, "1", thread+":write", "2")
	s.Do(t, "SET", "holdfast_rwlock_writer:{rw}", "60000 "+another+":write", "PX", "5000")
	s.Do(t, "SET", "holdfast_rwlock_reader:{rw}", "1")

	plain := surveyOf(t, c, "plain")
	require.WithinDuration(t, now, plain.Clock, time.Minute)
	plain.Clock = time.Time{}
	require.Equal(t, survey.Survey{Name: "plain", Kind: survey.KindPlain, TTL: wire.NoExpiry,
		Holds: []lua.Hold{{Owner: thread, Count: 2}},
		Waits: []survey.Wait{{Owner: another, Since: time.UnixMicro(1700000000123456),
			Lease: 30 * time.Second}}}, plain)
	fenced := surveyOf(t, c, "fenced")
	require.Equal(t, survey.KindFenced, fenced.Kind)
	require.EqualValues(t, 9223372036854775807, fenced.Token)
	require.InDelta(t, 30*time.Second, fenced.TTL, float64(5*time.Second))
	fair := surveyOf(t, c, "fair")
	require.Equal(t, survey.KindFair, fair.Kind)
	require.Empty(t, fair.Holds)
	require.Zero(t, fair.TTL)
	require.Equal(t, []survey.Wait{{Owner: thread, Until: time.UnixMilli(1700000000123)},
		{Owner: another, Until: time.UnixMilli(1750000000123)}}, fair.Waits)
	rw := surveyOf(t, c, "rw")
	require.Equal(t, survey.KindReadWrite, rw.Kind)
	require.Equal(t, "write", rw.Mode)
	require.ElementsMatch(t, []lua.Hold{{Owner: thread, Count: 1},
		{Owner: thread, Count: 2, Write: true}}, rw.Holds)
	require.Zero(t, rw.MoreHolds)
	require.WithinDuration(t, now.Add(-62*time.Second), rw.Waits[0].Since, 5*time.Second)
	rw.Waits[0].Since = time.Time{}
	require.Equal(t, []survey.Wait{{Owner: another, Mode: "write"}, {Mode: "read"}}, rw.Waits)
}

func TestCandidatesAreHashesWithFieldsOfALock(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	for name, fields := range map[string][]string{
		"thread":  {thread, "1"},
		"mode":    {"mode", "read", thread, "1", thread + ":write", "1"},
		"map":     {"colour", "green"},
		"mixed":   {thread, "1", "colour", "2"},
		"upper":   {"8743C9C0-0795-4907-87FD-6C719A6B4586:54", "1"},
		"nothing": {thread + ":read", "1"},
		"client":  {"program", "x", "host", "y", "pid", "1"},
	} {
		s.Do(t, append([]string{"HSET", name}, fields...)...)
	}
	s.Do(t, "SET", "text", "x")
	sv := survey.NewSurveyor(c, false)
	found, err := sv.Candidates(t.Context(), "thread", "mode", "map", "mixed", "upper", "nothing",
		"client", "text", "none")
	require.NoError(t, err)
	require.Equal(t, []string{"thread", "mode"}, found)
	s.Do(t, "HSET", "counter", thread, "many")
	require.Empty(t, surveyOf(t, c, "counter").Holds)
}

func TestSurveyReadsScoresThatAreNumbers(t *testing.T) {
	type list = []any
	server := fakeredis.New()
	t.Cleanup(server.Close)
	c, err := rueidis.NewClient(server.ClientOption())
	require.NoError(t, err)
	t.Cleanup(c.Close)
	server.Handle("EVALSHA", func([]string) any {
		return list{-1, -2, "", 0, list{}, 1, list{another + " 7000 plain", 1600000000000001},
			1, list{thread}, list{1600000000000, ""}, "", "", -2, 0}
	})
	waits := surveyOf(t, c, "order:42").Waits
	require.Len(t, waits, 2)
	require.EqualValues(t, 1600000000000, waits[0].Until.UnixMilli())
	require.EqualValues(t, 1600000000000001, waits[1].Since.UnixMicro())
}
