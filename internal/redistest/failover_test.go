//go:build redis

package redistest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClusterReplicaTakesOverFromADeadMasterWhichFollowsWhenItIsBack(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, WithReplicas(1))
	slot := c.Slot(t, "k")
	master := c.Owner(t, slot)
	replica := c.ReplicasOf(master)[0]
	set(t, c.Client(t), "k", "v")
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
			return client.Do(t.Context(),
				client.B().Set().Key("k").Value("v").Build()).Error() == nil
		}, failoverTimeout, pollInterval)
		require.Equal(t, "v", master.DoString(t, "GET", "k"))
		require.Same(t, master, s.replace(t, before), "they have failed over already")
	}
}
