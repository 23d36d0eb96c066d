package redistest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMonitorSeesCommandsOfClientsOnly(t *testing.T) {
	s := Start(t)
	client := s.Client(t)
	s.Do(t, "SET", "before", "1")
	monitor := s.Monitor(t)
	value := "a \"quoted\"\n\\ value\x00\xff"
	require.NoError(t,
		client.Do(t.Context(), client.B().Set().Key("k").Value(value).Build()).Error())
	require.NoError(t, client.Do(t.Context(), client.B().Ping().Build()).Error())
	s.Do(t, "EVAL", "return redis.call('GET', KEYS[1])", "1", "k")
	require.Equal(t, [][]string{
		{"set", "k", value},
		{"eval", "return redis.call('GET', KEYS[1])", "1", "k"},
	}, monitor.Commands(t))
	require.Empty(t, monitor.Commands(t))
}
