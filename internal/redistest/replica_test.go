//go:build redis

package redistest

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplicaIsInSyncWhenItHasStarted(t *testing.T) {
	t.Parallel()
	master := Start(t, WithHostNetwork(), WithFastReplicas(), WithPassword("secret"))
	for replicas := 1; replicas <= 2; replicas++ {
		replica := StartReplica(t, master, WithPassword("another"))
		c, err := master.dial(commandTimeout)
		require.NoError(t, err)
		defer c.Close()
		_, err = c.call("INCR", "writes")
		require.NoError(t, err)
		reached, err := c.call("WAIT", strconv.Itoa(replicas), "10000")
		require.NoError(t, err)
		require.EqualValues(t, replicas, reached)
		require.Equal(t, master.DoString(t, "GET", "writes"), replica.DoString(t, "GET", "writes"))
	}
}
