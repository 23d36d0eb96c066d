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
