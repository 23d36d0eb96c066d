package luashim_test

import (
	"regexp"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

// complaints keeps the errors of a test that is expected to fail.
type complaints struct {
	testing.TB
	errors []string
}

func (c *complaints) Errorf(format string, _ ...any) { c.errors = append(c.errors, format) }

// eval runs a script as a client does.
func eval(t *testing.T, c rueidis.Client, source string, keys ...string) rueidis.RedisResult {
	t.Helper()
	return c.Do(t.Context(),
		c.B().Eval().Script(source).Numkeys(int64(len(keys))).Key(keys...).Build())
}

func TestDeclaredKeysAreUsed(t *testing.T) {
	c := redistest.Start(t, redistest.WithScripts(luashim.Declared)).Client(t)
	for _, source := range []string{
		"return redis.call('SET', KEYS[1], 'v')",
		"local call = redis.call; return call('set', KEYS[1], 'v')",
		"redis.pcall('DEL', KEYS[1], KEYS[2]); return redis.status_reply('OK')",
		"redis.call('PUBLISH', 'a channel', 'm'); return redis.call('TIME') and 'OK'",
		"redis.call('PUBSUB', 'NUMSUB', 'a channel'); return redis.call('INFO') and 'OK'",
	} {
		got, err := eval(t, c, source, "one", "two").ToString()
		require.NoError(t, err, source)
		require.Equal(t, "OK", got, source)
	}
}

func TestUndeclaredKeyIsAnErrorThatNamesCommandAndKey(t *testing.T) {
	for source, want := range map[string]string{
		"return redis.call('SET', KEYS[1] .. ':1', 'v')":                "SET one:1",
		"redis.pcall('GET', 'x'); return redis.call('GET', 'y')":        "GET y",
		"return redis.pcall('DEL', KEYS[1], 'other')":                   "DEL other",
		"local _, e = pcall(redis.call, 'GET', 'x'); return {err = e}":  "GET x",
		"return redis.call('EXISTS', KEYS[1], 7)":                       "EXISTS 7",
		"local e = redis.pcall('HGET', 'h', 'f'); return {err = e.err}": "HGET h",
	} {
		t.Run(source, func(t *testing.T) {
			fails := &complaints{TB: t}
			t.Run("server", func(t *testing.T) {
				fails.TB = t
				s := redistest.Start(fails, redistest.WithScripts(luashim.Declared))
				_, err := eval(t, s.Client(t), source, "one").ToString()
				require.ErrorContains(t, err, luashim.Undeclared+": "+want)
			})
			require.NotEmpty(t, fails.errors, "the server's log was not read")
		})
	}
}

func TestUndeclaredKeyWhoseErrorIsIgnoredFailsTheTest(t *testing.T) {
	fails := &complaints{}
	t.Run("server", func(t *testing.T) {
		fails.TB = t
		s := redistest.Start(fails, redistest.WithScripts(luashim.Declared))
		_, err := eval(t, s.Client(t), "redis.pcall('GET', 'x') return 1").ToInt64()
		require.NoError(t, err)
	})
	require.Len(t, fails.errors, 1)
}

func TestFlaggedScriptUsesUndeclaredKeys(t *testing.T) {
	c := redistest.Start(t, redistest.WithScripts(luashim.Declared)).Client(t)
	got, err := eval(t, c, luashim.Flag+"return redis.call('SET', 'undeclared', 'v')").ToString()
	require.NoError(t, err)
	require.Equal(t, "OK", got)
}

func TestUnknownCommandIsAnError(t *testing.T) {
	c := redistest.Start(t, redistest.WithScripts(luashim.Declared)).Client(t)
	_, err := eval(t, c, "return redis.call('GETDEL', KEYS[1])", "one").ToString()
	require.ErrorContains(t, err, "luashim does not know where the keys of GETDEL are")
}

// ofScript matches what an error says of the script itself, and the general code, which rueidis
// drops.
var ofScript = regexp.MustCompile(`call to f_\w+|script: \w+, on |@?user_script: ?\d+|^ERR `)

// general returns an error without what ofScript matches.
func general(err error) string { return ofScript.ReplaceAllString(err.Error(), "") }

// The shim's refusals are the server's own, word for word.
func TestRefusedCommandFailsAsThoseThatNoScriptMayCall(t *testing.T) {
	s := redistest.Start(t, redistest.WithScripts(luashim.Refusing("time", "PUBSUB|SHARDNUMSUB")))
	c := s.Client(t)
	for refused, with := range map[string]string{
		"return redis.call('TIME')":                  "return redis.call('MULTI')",
		"return redis.pcall('time')":                 "return redis.pcall('MULTI')",
		"return redis.pcall('Pubsub','shardNumsub')": "return redis.pcall('MULTI')",
	} {
		_, err := eval(t, c, refused).ToString()
		require.ErrorContains(t, err, "command is not allowed from script", refused)
		_, want := s.Call("EVAL", with, "0")
		require.Equal(t, general(want), general(err))
	}
	for _, source := range []string{
		"redis.call('PUBSUB', 'NUMSUB', 'c') return 'OK'",
		"redis.call('PUBLISH', 'c', 'm') return redis.call('SET', KEYS[1], 'v')",
		"return type(redis.pcall('TIME').err) == 'string' and 'OK'",
	} {
		got, err := eval(t, c, source, "one").ToString()
		require.NoError(t, err)
		require.Equal(t, "OK", got)
	}
}

func TestKeysOfDifferentSlotsAreRefused(t *testing.T) {
	c := redistest.Start(t, redistest.WithScripts(luashim.Sharded)).Client(t)
	for _, keys := range [][]string{{}, {"a"}, {"{a}1", "x{a}2", "a"}, {"{}a", "{}a"}} {
		got, err := eval(t, c, "return 'OK'", keys...).ToString()
		require.NoError(t, err)
		require.Equal(t, "OK", got)
	}
	for _, keys := range [][]string{{"a", "b"}, {"{a}", "{a}", "{b}"}, {"{}a", "{}b"}} {
		_, err := eval(t, c, "return 'OK'", keys...).ToString()
		require.ErrorContains(t, err, "CROSSSLOT ")
	}
	// These are the slots of Redis.
	got, err := eval(t, c, "return 'OK'", "foo{bar}zap", "bar").ToString()
	require.NoError(t, err)
	require.Equal(t, "OK", got)
}

func TestShimsHaveNames(t *testing.T) {
	const source = "return 1"
	declared, err := luashim.Named("declared")
	require.NoError(t, err)
	require.Equal(t, luashim.Declared(source), declared(source))
	sharded, err := luashim.Named("sharded")
	require.NoError(t, err)
	require.Equal(t, luashim.Sharded(source), sharded(source))
	refusing, err := luashim.Named("refusing TIME pubsub")
	require.NoError(t, err)
	require.Equal(t, luashim.Refusing("TIME", "PUBSUB")(source), refusing(source))
	for _, name := range []string{"", "refusing", "declared TIME", "other"} {
		_, err := luashim.Named(name)
		require.ErrorContains(t, err, "luashim")
	}
}
