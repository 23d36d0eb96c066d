//go:build redis

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

func TestNodeWhoseEndpointMovesVotesAgain(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	replica := redistest.StartReplica(t, nodes[0])
	at := redistest.NewEndpoint(nodes[0])
	options := rlock.Options{Server: "moves", WatchdogLease: 6 * time.Second}
	moves := newClientOn(t, nodes[0].Client(t, at.Use), options)
	stays := newClients(t, nodes[1:], options)[0]
	lock := redlock.NewOn(name, atOnce, moves, stays) // a quorum of two is both
	hold := take(t, lock, rlock.Watchdog)

	redistest.Promote(t, nodes[0], replica)
	at.Move(replica)
	before := hold.Deadline()
	eventually(t, func() bool { return hold.Deadline().After(before) }, "it is not renewed")
	require.NoError(t, hold.Extend(t.Context(), time.Minute))
	unlock(t, hold)
	waitUntilFree(t, nodes[1], replica)
	hold = acquired(t, lockInBackground(t.Context(), lock, longLease))
	waitUntilHeld(t, []*redistest.Server{nodes[1], replica})
	unlock(t, hold)
}
