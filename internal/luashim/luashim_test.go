package luashim_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/luashim"
	"holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyMain(m) }

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
