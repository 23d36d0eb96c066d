//go:build redis

package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/lua"
)

func TestBatchOnAClusterTakesAndReleasesLocksOfOneSlot(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := cluster.Client(t)
	node := cluster.Owner(t, cluster.Slot(t, "{bank}:1"))
	var requests, releases []lua.BatchPart
	for _, lock := range []string{"{bank}:1", "{bank}:2"} {
		requests = append(requests, lua.BatchPart{Lock: lock, Owner: me, Count: 1})
		releases = append(releases, releaseOf(lock, me, 0))
	}
	requireBatch(t, c, lease, requests...)
	requireLock(t, node, "{bank}:2", map[string]string{me: "1"}, lease)
	release := func() []lua.BatchReleased {
		parts, err := lua.ReleaseBatch(t.Context(), c, lua.Sharded, releases)
		require.NoError(t, err)
		require.Len(t, parts, len(releases))
		return parts
	}
	if !knowsShardedChannels(t, node) { // no message is published, but the locks are free
		for _, part := range release() {
			require.NoError(t, part.Err)
			require.True(t, part.Held)
			require.Contains(t, part.Refusal, "Unknown Redis command")
		}
		require.Zero(t, node.DoInt(t, "DBSIZE"))
		return
	}
	sub := subscribe(t, node, "SSUBSCRIBE", lua.Channel("{bank}:2"))
	parts := release()
	require.Equal(t, []lua.BatchReleased{gone, gone}, parts)
	requireFree(t, node, "{bank}:1")
	sub.requireBytes(t, array("smessage", lua.Channel("{bank}:2"), "0"))
}
