//go:build redis

package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestMasterWhoseReplicasHaveGoneGrantsLocksUntilOneIsBack(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	var log logtest.Lines
	c := newClient(t, master, rlock.Options{SyncReplicas: rlock.SyncConnected,
		SyncTimeout: 2 * time.Second, Logger: log.Logger()})
	lock := c.NewLock("order")
	unlock(t, take(t, lock, longLease))
	replicas[0].Kill(t)
	eventually(t, func() bool {
		return strings.Contains(master.DoString(t, "INFO", "replication"), "connected_slaves:0")
	}, "the master has a replica")
	unlock(t, take(t, lock, longLease)) // waits once for the one that was there
	waits := calls(master, "wait")
	for range 3 {
		unlock(t, take(t, lock, longLease))
	}
	require.Equal(t, waits, calls(master, "wait"), "waits for replicas that are not there")
	require.Len(t, log.With("no replica is connected"), 1)

	replica := redistest.StartReplica(t, master)
	eventually(t, func() bool {
		hold := take(t, lock, longLease)
		defer unlock(t, hold)
		return calls(master, "wait") > waits
	}, "never waits for the new replica")
	hold := take(t, lock, longLease)
	require.Equal(t, map[string]string{hold.Owner(): "1"}, replica.DoMap(t, "HGETALL", "order"))
	unlock(t, hold)
}

// It may have replicas.
func TestMasterThatDoesNotSayWhetherItHasReplicasMustHaveOne(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s, "-info")
	const timeout = 50 * time.Millisecond
	c := newClient(t, s,
		rlock.Options{SyncReplicas: rlock.SyncConnected, SyncTimeout: timeout}, asUser)
	_, err := c.NewLock("order").TryLock(t.Context(), rlock.NoWait, longLease)
	shortfall(t, err, 1, 0, timeout)
}
