package lua_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/rediserr"
	"holdfast/internal/wire"
	"holdfast/lua"
)

func TestHashThatIsNoLockIsRefused(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", lock, "colour", "green")
	_, err := lua.Inspect(t.Context(), c, lock)
	e := requireError(t, err, rediserr.ClassPermanent, "")
	require.Contains(t, e.Message, `"colour"`)
	require.Contains(t, e.Message, `"order:42"`)
}

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
	require.Equal(t, lua.Survey{Name: "plain", Kind: lua.KindPlain, TTL: wire.NoExpiry,
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

func TestSurveyReadsScoresThatAreNumbers(t *testing.T) {
	server, c := startFake(t)
	says(server, list{-1, -2, "", 0, list{}, 1, list{other + " 7000 p", 1600000000000001}, 1, list{me},
		list{1600000000000, ""}, "", "", -2, 0})
	waits := survey(t, c, lock).Waits
	require.Len(t, waits, 2)
	require.EqualValues(t, 1600000000000, waits[0].Until.UnixMilli())
	require.EqualValues(t, 1600000000000001, waits[1].Since.UnixMicro())
}

// clientID is the id of a client.
const clientID = "8743c9c0-0795-4907-87fd-6c719a6b4586"

var nightly = lua.Identity{Program: "billing", Host: "web-1", PID: 4711,
	Start: time.UnixMilli(1700000000123), Label: "nightly"}

func TestIdentityIsAHashOfItsOwnWithATTL(t *testing.T) {
	s, c := start(t)
	require.NoError(t, lua.Identify(t.Context(), c, clientID, nightly, lease))
	key := "holdfast_client:{" + clientID + "}"
	require.Equal(t, map[string]string{"program": "billing", "host": "web-1", "pid": "4711",
		"start": "1700000000123", "label": "nightly"}, s.DoMap(t, "HGETALL", key))
	requireTTL(t, s, key, lease)
	read, err := lua.ReadIdentity(t.Context(), c, clientID)
	require.NoError(t, err)
	require.Equal(t, nightly, read)
	require.NoError(t, lua.Forget(t.Context(), c, clientID))
	require.EqualValues(t, 0, s.Do(t, "EXISTS", key))
}

func TestFieldsOfAnIdentityThatCannotBeReadAreIgnored(t *testing.T) {
	s, c := start(t)
	s.Do(t, "HSET", wire.ClientKey(clientID), "host", "web-1", "pid", "many", "start", "", "new", "1")
	read, err := lua.ReadIdentity(t.Context(), c, clientID)
	require.NoError(t, err)
	require.Equal(t, lua.Identity{Host: "web-1"}, read)
}

func TestIdentityNamesHostProcessAndLabel(t *testing.T) {
	require.Equal(t, "host web-1, pid 4711, nightly", nightly.String())
	require.Equal(t, "host web-1, pid 4711", lua.Identity{Host: "web-1", PID: 4711}.String())
	require.Equal(t, "pid 4711", lua.Identity{PID: 4711}.String())
	require.Empty(t, lua.Identity{}.String())
	require.Equal(t, `host a\x1b[2J\nb, "é\a"`,
		lua.Identity{Host: "a\x1b[2J\nb", Label: "\"é\a\""}.String())
}
