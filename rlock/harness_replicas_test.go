//go:build redis

package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// startReplicated starts a master and replicas of it that are in sync.
func startReplicated(
	t testing.TB, replicas int,
) (master *redistest.Server, copies []*redistest.Server) {
	t.Helper()
	master = redistest.Start(t, redistest.WithHostNetwork(), redistest.WithFastReplicas())
	for range replicas {
		copies = append(copies, redistest.StartReplica(t, master))
	}
	return master, copies
}

// waitForBlocked waits until n clients of the server wait in a command, as WAIT makes them.
func waitForBlocked(t testing.TB, s *redistest.Server, n string) {
	t.Helper()
	eventually(t, func() bool {
		reply, err := s.Call("INFO", "clients")
		info, _ := reply.(string)
		return err == nil && strings.Contains(info, "blocked_clients:"+n+"\r\n")
	}, n+" clients in WAIT")
}

// shortfall requires an error that says how many replicas had the acquisition.
func shortfall(t testing.TB, err error, want, got int, waited time.Duration) {
	t.Helper()
	require.ErrorIs(t, err, rlock.ErrNotReplicated)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	require.NotErrorIs(t, err, rlock.ErrOutcomeUnknown)
	short := new(rlock.ReplicationError)
	require.ErrorAs(t, err, &short)
	require.Equal(t, rlock.ReplicationError{Lock: short.Lock, Want: want, Got: got, Waited: waited},
		*short)
	require.ErrorContains(t, err, "SyncTimeout")
}

// enough is more time for acknowledgements than healthy replicas need.
const enough = longWait
