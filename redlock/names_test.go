package redlock_test

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// unnamed returns a client of one of two servers whose name is unknown.
func unnamed(t testing.TB, servers []*redistest.Server, i int) *rlock.Client {
	return newClientOn(t, servers[i].Client(t, func(o *rueidis.ClientOption) {
		// which of them is the master's is unknown
		o.Standalone.ReplicaAddress = []string{servers[1-i].Addr()}
		o.SendToReplicas = func(rueidis.Completed) bool { return false }
	}), rlock.Options{})
}

// They count from 1, in the order in which they were given.
func TestErrorsNumberTheNodesOfServersWithoutAName(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 2)
	a, b := unnamed(t, servers, 0), unnamed(t, servers, 1)
	give(t, servers[1:])
	_, err := redlock.NewOn(name, atOnce, b, a).TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.ErrorContains(t, err, "node 1: held by somebody")
	require.NotContains(t, err.Error(), "node 0")
	waitUntilFree(t, servers[0])

	_, err = redlock.NewOn(name, atOnce, a, b, a).TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrInvalid)
	require.ErrorContains(t, err, "nodes 1 and 3 are on one server (the same client)")
}
