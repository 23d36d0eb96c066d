package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/lua"
)

// Owners as clients name them: only those make a hash one of a lock.
const (
	thread  = "8743c9c0-0795-4907-87fd-6c719a6b4586:54"
	another = "11112222-3333-4444-8555-666677778888:-1"
)

func survey(t *testing.T, c lua.Redis, name string) lua.Survey {
	t.Helper()
	s := lua.NewSurveyor(c, false).Survey(t.Context(), name)[0]
	require.NoError(t, s.Err)
	return s
}

func TestSurveyTellsTheKindOfALock(t *testing.T) {
	s, c := start(t)
	now := time.Now()
	s.Do(t, "HSET", "plain", thread, "2")
	s.Do(t, "ZADD", "holdfast_lock_waiters:{plain}", "1700000000123456", another+" 30000 p")
	s.Do(t, "HSET", "fenced", thread, "1")
	s.Do(t, "PEXPIRE", "fenced", "30000")
	s.Do(t, "SET", "redisson_lock_token:{fenced}", "9223372036854775807")
	s.Do(t, "RPUSH", "redisson_lock_queue:{fair}", thread, another)
	s.Do(t, "ZADD", "redisson_lock_timeout:{fair}", "1700000000123", thread, "1800000000123", another)
	s.Do(t, "ZADD", "holdfast_lock_budget:{fair}", "1750000000123", another)
	s.Do(t, "HSET", "rw", "mode", "write", thread, "1", thread+":write", "2")
	s.Do(t, "SET", "holdfast_rwlock_writer:{rw}", "60000 "+another+":write", "PX", "5000")
	s.Do(t, "SET", "holdfast_rwlock_reader:{rw}", "1")

	plain := survey(t, c, "plain")
	require.WithinDuration(t, now, plain.Clock, time.Minute)
	plain.Clock = time.Time{}
	require.Equal(t, lua.Survey{Name: "plain", Kind: lua.KindPlain, TTL: lua.NoExpiry,
		Holds: []lua.Hold{{Owner: thread, Count: 2}},
		Waits: []lua.Wait{{Owner: another, Since: time.UnixMicro(1700000000123456),
			Lease: 30 * time.Second}}}, plain)
	fenced := survey(t, c, "fenced")
	require.Equal(t, lua.KindFenced, fenced.Kind)
	require.EqualValues(t, 9223372036854775807, fenced.Token)
	require.InDelta(t, 30*time.Second, fenced.TTL, float64(5*time.Second))
	fair := survey(t, c, "fair")
	require.Equal(t, lua.KindFair, fair.Kind)
	require.Empty(t, fair.Holds)
	require.Zero(t, fair.TTL)
	require.Equal(t, []lua.Wait{{Owner: thread, Until: time.UnixMilli(1700000000123)},
		{Owner: another, Until: time.UnixMilli(1750000000123)}}, fair.Waits)
	rw := survey(t, c, "rw")
	require.Equal(t, lua.KindReadWrite, rw.Kind)
	require.Equal(t, "write", rw.Mode)
	require.ElementsMatch(t, []lua.Hold{{Owner: thread, Count: 1},
		{Owner: thread, Count: 2, Write: true}}, rw.Holds)
	require.Zero(t, rw.MoreHolds)
	require.WithinDuration(t, now.Add(-62*time.Second), rw.Waits[0].Since, 5*time.Second)
	rw.Waits[0].Since = time.Time{}
	require.Equal(t, []lua.Wait{{Owner: another, Mode: "write"}, {Mode: "read"}}, rw.Waits)
}

func TestSurveyFindsNothingInKeysOfOtherTypes(t *testing.T) {
	s, c := start(t)
	for i, name := range []string{"a", "b", "c"} {
		keys := append(lua.Related(name), name)
		for j, key := range keys {
			switch (i + j) % 3 {
			case 0:
				s.Do(t, "SADD", key, "x")
			case 1:
				s.Do(t, "XADD", key, "*", "x", "y")
			default:
				s.Do(t, "HSET", key, "colour", "green")
			}
		}
		got := survey(t, c, name)
		if got.Kind == lua.KindReadWrite { // that key is never read, and only this library has it
			require.Equal(t, []lua.Wait{{Mode: "read"}}, got.Waits)
			continue
		}
		require.Empty(t, got.Holds)
		require.Empty(t, got.Waits)
	}
}

func TestCandidatesAreHashesWithFieldsOfALock(t *testing.T) {
	s, c := start(t)
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
	sv := lua.NewSurveyor(c, false)
	found, err := sv.Candidates(t.Context(), "thread", "mode", "map", "mixed", "upper", "nothing",
		"client", "text", "none")
	require.NoError(t, err)
	require.Equal(t, []string{"thread", "mode"}, found)
	s.Do(t, "HSET", "counter", thread, "many")
	require.Empty(t, survey(t, c, "counter").Holds)
}

func TestSurveyWorksOnAServerThatForgetsScripts(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", "a", thread, "1")
	s.Do(t, "HSET", "b", thread, "1")
	sv := lua.NewSurveyor(c, false)
	for range 2 {
		s.Do(t, "SCRIPT", "FLUSH")
		for _, one := range sv.Survey(t.Context(), "a", "b") {
			require.NoError(t, one.Err)
			require.NotEmpty(t, one.Holds)
		}
	}
}

func TestSurveyReadsScoresThatAreNumbers(t *testing.T) {
	f, c := startFake(t)
	f.says("*14\r\n:-1\r\n:-2\r\n+\r\n:0\r\n*0\r\n:1\r\n" +
		"*2\r\n+" + other + " 7000 p\r\n:1600000000000001\r\n" +
		":1\r\n*1\r\n+" + me + "\r\n*2\r\n:1600000000000\r\n+\r\n+\r\n+\r\n:-2\r\n:0\r\n")
	waits := survey(t, c, lock).Waits
	require.Len(t, waits, 2)
	require.EqualValues(t, 1600000000000, waits[0].Until.UnixMilli())
	require.EqualValues(t, 1600000000000001, waits[1].Since.UnixMicro())
}
