//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestShardedReleaseReachesShardedSubscribersOfItsNode(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := cluster.Client(t)
	node := cluster.Owner(t, cluster.Slot(t, lock))
	if !knowsShardedChannels(t, node) { // no message is published, but the lock is free
		hold(t, node, lock, me, "1", lease)
		out, err := plain.Release(t.Context(), c, me, 0, lua.HandOver{Channels: lua.Sharded})
		require.NoError(t, err)
		require.True(t, out.Held)
		require.Contains(t, out.Refusal, "Unknown Redis command")
		requireFree(t, node, lock)
		return
	}
	sub := subscribe(t, node, "SSUBSCRIBE", lockChannel)

	hold(t, node, lock, me, "1", lease)
	out, err := plain.Release(t.Context(), c, me, 0, lua.HandOver{Channels: lua.Sharded})
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	sub.requireBytes(t, array("smessage", lockChannel, "0"))

	hold(t, node, lock, me, "1", lease)
	out, err = plain.ForceUnlock(t.Context(), c, lua.Sharded)
	require.NoError(t, err)
	require.Equal(t, lua.Released{Held: true}, out)
	sub.requireBytes(t, array("smessage", lockChannel, "0"))
}
