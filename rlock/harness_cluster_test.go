//go:build redis

package rlock_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// nodeOf returns the node of a cluster that serves a lock.
func nodeOf(t testing.TB, c *redistest.Cluster, lock string) *redistest.Server {
	t.Helper()
	return c.Owner(t, c.Slot(t, lock))
}

// oneLockPerNode returns lock names, each served by another node.
func oneLockPerNode(t testing.TB, c *redistest.Cluster) map[*redistest.Server]string {
	t.Helper()
	found := make(map[*redistest.Server]string)
	for i := 0; len(found) < len(c.Nodes); i++ {
		name := fmt.Sprint("lock-", i)
		found[nodeOf(t, c, name)] = name
	}
	return found
}

// knowsSharded reports whether the cluster has sharded channels, as Redis 7 and Valkey do.
func knowsSharded(t testing.TB, cluster *redistest.Cluster) bool {
	t.Helper()
	_, err := cluster.Nodes[0].Call("PUBSUB", "SHARDNUMSUB")
	if err != nil {
		require.Contains(t, cluster.Nodes[0].DoString(t, "INFO", "server"), "redis_version:6.")
	}
	return err == nil
}
