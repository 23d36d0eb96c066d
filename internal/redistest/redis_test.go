//go:build redis

package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServersRefuseWhatTheProfileOfTheEnvironmentSays(t *testing.T) {
	t.Setenv(profileVariable, "serverless")
	s := Start(t)
	c := s.Client(t)
	for _, command := range []string{"CONFIG", "CLIENT", "CLUSTER", "WAIT", "SPUBLISH"} {
		require.ErrorContains(t, do(t, c, command).Error(), "unknown command '"+command+"'")
	}
	require.ErrorContains(t, do(t, c, "EVAL", "return 1", "0").Error(), "without any input keys")
	const now = "return redis.call('TIME')"
	require.ErrorContains(t, do(t, c, "EVAL", now, "1", "k").Error(), "not allowed from script")
	require.NoError(t,
		do(t, c, "EVAL", "return redis.call('SET', KEYS[1], 'v')", "1", "k").Error())
	require.Equal(t, map[string]string{"save": ""}, s.DoMap(t, "CONFIG", "GET", "save"),
		"the test itself may do everything")
	require.True(t, ScriptsLack("TIME"))

	t.Setenv(profileVariable, "managed")
	require.NoError(t, do(t, Start(t).Client(t), "EVAL", now, "1", "k").Error())
	require.False(t, ScriptsLack("TIME"))
}

func TestClusterReplicaTakesOverFromADeadMasterWhichFollowsWhenItIsBack(t *testing.T) {
	for name, opts := range map[string][]Option{
		"plain": nil,
		"TLS":   {WithTLS(), WithPassword("secret"), WithUser("app", "another")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := StartCluster(t, 3, with(opts, WithReplicas(1))...)
			slot := c.Slot(t, "k")
			master := c.Owner(t, slot)
			replica := c.ReplicasOf(master)[0]
			require.NoError(t, do(t, c.Client(t), "SET", "k", "v").Error())
			WaitForReplica(t, master, replica)

			master.Kill(t)
			start := time.Now()
			require.Same(t, replica, c.Failover(t, master))
			require.Less(t, time.Since(start), 12*time.Second,
				"the cluster did it, after its node timeout of 15 s")
			require.Equal(t, "v", replica.DoString(t, "GET", "k"))
			require.Len(t, c.Masters(t), 3)

			master.Restart(t)
			require.Eventually(t, func() bool {
				return master.copies() == replica.port
			}, startTimeout, pollInterval)
		})
	}
}

func TestSentinelsFailOverOnDemandAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, WithReplicas(2), WithWatchers(3))
	client := s.Client(t)
	for range 2 {
		before := s.Master(t)
		master := s.Failover(t)
		require.NotSame(t, before, master)
		require.Eventually(t, func() bool {
			return do(t, client, "SET", "k", "v").Error() == nil
		}, failoverTimeout, pollInterval)
		require.Equal(t, "v", master.DoString(t, "GET", "k"))
		require.Same(t, master, s.replace(t, before), "they have failed over already")
	}
}
