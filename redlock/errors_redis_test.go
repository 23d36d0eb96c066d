//go:build redis

package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/redlock"
	"holdfast/rlock"
)

func TestErrorSaysOnceWhatIsWrongWithSeveralNodes(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 5)
	clients := newClients(t, servers, rlock.Options{})
	warm(t, clients)
	give(t, servers[:1])
	servers[1].Do(t, "REPLICAOF", "127.0.0.1", "1")
	servers[2].Do(t, "REPLICAOF", "127.0.0.1", "1")
	_, err := redlock.NewOn(name, atOnce, clients...).TryLock(t.Context(), rlock.NoWait, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired,
		"but for somebody on one node there would be a quorum")
	require.NotErrorIs(t, err, redlock.ErrNoQuorum)
	e := quorumError(t, err)
	var held *rlock.HeldError
	require.ErrorAs(t, e.Nodes[0].Err, &held)
	require.Equal(t, "somebody:0", held.Owner)
	require.Regexp(t, `; a: held by somebody:0 for another (10m0s|9m5)`, err.Error())
	require.Regexp(
		t,
		"; b, c: [^;]*READONLY ",
		err.Error(),
	) // before Redis 7 behind where the script was
	require.Equal(t, 1, strings.Count(err.Error(), "READONLY"))
	require.Regexp(t, `\d of 5 nodes granted it, 3 are needed`, err.Error())
	waitUntilFree(t, servers[3:]...)
}

func TestYoungNodesAreNamedWithTheTimeTheyAreNotCounted(t *testing.T) {
	t.Parallel()
	servers := startNodes(t, 3)
	clients := newClients(t, servers, rlock.Options{})
	lock := redlock.NewOn(name, redlock.Options{NodeTimeout: 3 * time.Second}, clients...)
	_, err := lock.TryLock(t.Context(), longWait, rlock.Watchdog)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	var young *redlock.DelayedError
	require.ErrorAs(t, err, &young)
	require.Greater(t, young.For, 20*time.Second)
	require.LessOrEqual(t, young.For, 31*time.Second)
	require.False(t, young.Emptied)
	require.ErrorContains(t, err, "not counted for another")
	require.ErrorContains(t, err, "MaxLease")
	require.Empty(t, keysOf(t, servers...))
}
