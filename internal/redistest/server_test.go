package redistest

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { VerifyMain(m) }

func do(t *testing.T, c rueidis.Client, words ...string) rueidis.RedisResult {
	t.Helper()
	return c.Do(t.Context(), c.B().Arbitrary(words...).Build())
}

func TestPausedServerIsGoneAfterItsTest(t *testing.T) {
	var addr string
	t.Run("with a paused server", func(t *testing.T) {
		s := Start(t)
		s.Client(t)
		s.Pause(t)
		addr = s.Addr()
	})
	_, err := net.DialTimeout("tcp", addr, time.Second)
	require.Error(t, err)
}

func TestMonitorSeesCommandsOfClientsOnly(t *testing.T) {
	s := Start(t)
	client := s.Client(t)
	s.Do(t, "SET", "before", "1")
	monitor := s.Monitor(t)
	value := "a \"quoted\"\n\\ value\x00\xff"
	require.NoError(t, do(t, client, "set", "k", value).Error())
	require.NoError(t, do(t, client, "PING").Error())
	s.Do(t, "EVAL", "return redis.call('GET', KEYS[1])", "1", "k")
	require.Equal(t, [][]string{
		{"set", "k", value},
		{"eval", "return redis.call('GET', KEYS[1])", "1", "k"},
	}, monitor.Commands(t))
	require.Empty(t, monitor.Commands(t))
}

func TestScriptsOfClientsAreChanged(t *testing.T) {
	const answer = "return answer or 'as it was'"
	s := Start(t, WithScripts(func(source string) string {
		return "local answer = 'changed' " + source
	}))
	c := s.Client(t)
	for range 2 {
		require.ErrorContains(t, do(t, c, "EVALSHA", sha(answer), "0").Error(), "NOSCRIPT")
		got, err := do(t, c, "EVAL", answer, "0").ToString()
		require.NoError(t, err)
		require.Equal(t, "changed", got)
		got, err = do(t, s.Client(t), "EVALSHA", sha(answer), "0").ToString()
		require.NoError(t, err)
		require.Equal(t, "changed", got)
		s.Do(t, "SCRIPT", "FLUSH")
	}
	require.Equal(t, "as it was", strings.ReplaceAll(s.DoString(t, "EVAL",
		"local answer "+answer, "0"), "\n", ""), "the test itself is left alone")
}
