//go:build redis

package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// A lock that waits for replicas is acquired by a command of its own, and released by one.
func TestPlainLocksOfAClientThatWaitsForReplicasAreNoBatch(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	redistest.StartReplica(t, master)
	c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: longWait})
	lock := multilock.New(c.NewLock("a"), c.NewLock("b"))
	learn(t, lock, c.NewLock("a"))
	monitor := master.Monitor(t)
	hold := take(t, lock, longLease)
	waits := 0
	for _, command := range monitor.Commands(t) {
		if command[0] == "wait" {
			waits++
		}
	}
	require.Equal(t, 2, waits)
	unlock(t, hold)
	requireFree(t, master)
}

func TestPlainLocksOfOneSlotOfAClusterAreTwoCommands(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	c := newClientOn(t, cluster.Client(t), rlock.Options{})
	// In the order of their names the slots alternate.
	lock := multilock.New(c.NewLock("1{east}"), c.NewLock("2{west}"), c.NewLock("3{east}"),
		c.NewLock("4{west}"), c.NewLock("5{east}"))
	learn(t, lock, c.NewLock("1{east}"))
	monitors := make([]*redistest.Monitor, len(cluster.Nodes))
	for i, node := range cluster.Nodes {
		monitors[i] = node.Monitor(t)
	}
	calls := func() (n int) {
		for _, m := range monitors {
			for _, command := range m.Commands(t) {
				if command[0] == "evalsha" {
					n++
				}
			}
		}
		return n
	}
	calls()
	hold := take(t, lock, longLease)
	require.Equal(t, 2, calls(), "one for each slot")
	unlock(t, hold)
	require.Equal(t, 2, calls())
	requireFree(t, cluster.Nodes...)
}
