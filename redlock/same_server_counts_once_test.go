package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

// A server that counted twice could form a quorum alone.
func TestServerUnderTwoNamesCountsOnce(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 2)
	same := newClientOn(t, servers[0].Client(t), rlock.Options{Server: "the same"})
	clients := newClients(t, servers, rlock.Options{})
	warm(t, append(clients, same))
	l := redlock.NewOn(name, atOnce, clients[0], same, clients[1])
	hold := take(t, l, longLease)
	require.Equal(t, 2, l.Parts(hold))
	require.NoError(t, hold.Unlock(t.Context()))
	waitUntilFree(t, servers...)

	servers[1].Kill(t)
	_, err := l.TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "same server as another node")
	waitUntilFree(t, servers[0])
}
