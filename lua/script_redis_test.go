//go:build redis

package lua_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestEachNodeOfAClusterIsSentAScriptOnce(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := cluster.Client(t)
	locks := map[*redistest.Server]int{}
	for i := range 12 {
		key := fmt.Sprintf("order:%d", i)
		holder, err := lockPlain(t.Context(), c, key, me, lease)
		require.NoError(t, err)
		require.Nil(t, holder)
		node := cluster.Owner(t, cluster.Slot(t, key))
		requireLock(t, node, key, map[string]string{me: "1"}, lease)
		locks[node]++
	}
	require.Len(t, locks, 3)
	for node, n := range locks {
		stats := node.CommandStats(t)
		require.Equal(t, n, stats["evalsha"])
		require.Equal(t, 1, stats["eval"])
	}
}
