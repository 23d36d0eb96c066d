//go:build redis

package luashim_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
)

// complaints keeps the errors of a test that is expected to fail.
type complaints struct {
	testing.TB
	errors []string
}

func (c *complaints) Errorf(format string, _ ...any) { c.errors = append(c.errors, format) }

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
