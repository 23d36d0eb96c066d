//go:build redis

package redistest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServersRefuseWhatTheProfileOfTheEnvironmentSays(t *testing.T) {
	t.Setenv(profileVariable, "serverless")
	s := Start(t)
	c := s.Client(t)
	for _, command := range []string{"CONFIG", "CLIENT", "CLUSTER", "WAIT", "SPUBLISH"} {
		err := c.Do(t.Context(), c.B().Arbitrary(command).Build()).Error()
		require.ErrorContains(t, err, "unknown command '"+command+"'")
	}
	eval := func(script string, keys ...string) error {
		return c.Do(t.Context(),
			c.B().Eval().Script(script).Numkeys(int64(len(keys))).Key(keys...).Build()).Error()
	}
	require.ErrorContains(t, eval("return 1"), "without any input keys")
	require.ErrorContains(t, eval("return redis.call('TIME')", "k"), "not allowed from script")
	require.NoError(t, eval("return redis.call('SET', KEYS[1], 'v')", "k"))
	require.Equal(t, map[string]string{"save": ""}, s.DoMap(t, "CONFIG", "GET", "save"),
		"the test itself may do everything")
	require.True(t, ScriptsLack("TIME"))

	t.Setenv(profileVariable, "managed")
	s = Start(t)
	c = s.Client(t)
	require.NoError(t, eval("return redis.call('TIME')", "k"))
	require.False(t, ScriptsLack("TIME"))
}

func TestProfileLeavesToServersWhatTheyNeed(t *testing.T) {
	t.Setenv(profileVariable, "serverless")
	for name, of := range map[string]struct {
		opts          []Option
		hidden, known []string
		rewritten     bool
	}{
		"single": {nil, []string{"CONFIG", "CLUSTER"}, []string{"TIME"}, true},
		"TLS":    {[]Option{WithTLS()}, []string{"CONFIG", "CLUSTER", "TIME"}, nil, false},
		"cluster": {[]Option{AsClusterNode()}, []string{"CONFIG", "TIME"},
			[]string{"CLUSTER", "PSYNC"}, false},
		"replica": {[]Option{WithHostNetwork()}, nil, []string{"CONFIG", "PSYNC"}, false},
	} {
		s := collect(t, of.opts)
		for _, command := range of.hidden {
			require.True(t, s.hidden[command], "%s: %s", name, command)
		}
		for _, command := range of.known {
			require.False(t, s.hidden[command], "%s: %s", name, command)
		}
		require.Equal(t, of.rewritten, s.rewrite != nil, name)
	}
}

func TestClientsSpeakRESP2IfTheEnvironmentSaysSo(t *testing.T) {
	for version, proto := range map[string]int64{"": 3, "2": 2} {
		t.Setenv(respVariable, version)
		c := Start(t).Client(t)
		hello, err := c.Do(t.Context(), c.B().Arbitrary("HELLO").Build()).AsMap()
		require.NoError(t, err)
		got := hello["proto"]
		number, err := got.AsInt64()
		require.NoError(t, err)
		require.Equal(t, proto, number)
	}
}
