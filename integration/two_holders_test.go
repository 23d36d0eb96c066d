package integration_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// The tests in this file show what a lock on one Redis cannot promise: a server that forgets grants
// a lock to a second holder without the knowledge of the first. They prove it, and when one of them
// fails the README must change.

// breach is two processes with one connection each. The first holds the fenced lock "job".
type breach struct {
	*integration.Servers
	first, second *rlock.Client
	hold          *rlock.Hold
}

func newBreach(t *testing.T, topology integration.Topology,
	variants ...integration.Variant) *breach {
	t.Helper()
	servers := integration.Start(t, topology, variants...)
	process := func() *rlock.Client {
		return newClient(t, servers.Client(t, redistest.OneConnection), "")
	}
	b := &breach{Servers: servers, first: process(), second: process()}
	b.hold = locktest.Acquire(t, b.first.NewFencedLock("job"), longLease)
	return b
}

// requireTwoHolders requires that the second process acquires the lock while the first believes
// that it holds it, and that the first learns of the loss with its next request. It returns the
// second hold.
func (b *breach) requireTwoHolders(t *testing.T) *rlock.Hold {
	t.Helper()
	other := locktest.Acquired(t,
		locktest.LockInBackground(t.Context(), b.second.NewFencedLock("job"), longLease))
	require.True(t, b.hold.Valid(),
		"the first holder knows, so this is no breach any more, and the README must change")
	require.True(t, other.Valid())
	// A release over a connection that breaks may have been executed, so that a missing lock counts
	// as released. Therefore the first process must notice the broken connection before.
	locktest.Unlock(t, locktest.Acquired(t,
		locktest.LockInBackground(t.Context(), b.first.NewLock("{job}connection"), longLease)))
	require.ErrorIs(t, b.hold.Unlock(), rlock.ErrLost)
	require.True(t, other.Valid(), "the release of the first must not take the lock of the second")
	return other
}

func TestServerThatRestartsEmptyHasTwoHoldersAndCountsTokensAnew(t *testing.T) {
	t.Parallel()
	b := newBreach(t, integration.Single)
	b.Masters(t)[0].Restart(t)
	require.Equal(t, b.hold.Token(), b.requireTwoHolders(t).Token(), "both have token 1")
}

func TestServerThatRestartsWithItsDataHasOneHolder(t *testing.T) {
	t.Parallel()
	b := newBreach(t, integration.Single, integration.AppendOnly)
	b.Masters(t)[0].Restart(t)
	// must reconnect
	_, err := b.second.NewFencedLock("job").TryLock(t.Context(), 3*time.Second, longLease)
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	locktest.Unlock(t, b.hold)
}

func TestServerWhoseClockJumpsAheadHasTwoHoldersAndKeepsItsTokens(t *testing.T) {
	t.Parallel()
	b := newBreach(t, integration.Single)
	// Ends the lease like a clock that jumps.
	require.Equal(t, int64(1), b.Masters(t)[0].DoInt(t, "PEXPIRE", "job", "1"))
	require.Greater(t, b.requireTwoHolders(t).Token(), b.hold.Token(),
		"the resource refuses the first")
}

// cutReplicasOff keeps all later writes from the replicas, which keep running.
func (b *breach) cutReplicasOff(t *testing.T) {
	t.Helper()
	master := b.Home(t, "job")
	for _, replica := range b.Replicas(t) {
		replica.Do(t, "CONFIG", "SET", "masterauth", "wrong")
	}
	master.Do(t, "CLIENT", "KILL", "TYPE", "replica")
}

func TestReplicaThatIsPromotedWithoutTheLockHasTwoHolders(t *testing.T) {
	t.Parallel()
	onFailover(t, func(t *testing.T, b *breach) {
		locktest.Unlock(t, b.hold)
		inSync(t, b.Home(t, "job"), b.Replicas(t)) // they know the first token
		b.cutReplicasOff(t)
		b.hold = locktest.Acquire(t, b.first.NewFencedLock("job"), longLease)
		b.Home(t, "job").Kill(t)
		b.Failover(t, "job")
		require.Equal(t, b.hold.Token(), b.requireTwoHolders(t).Token(), "the same token twice")
	})
}

func TestLockThatWaitsForItsReplicasHasOneHolderAfterAFailover(t *testing.T) {
	t.Parallel()
	onFailover(t, func(t *testing.T, b *breach) {
		locktest.Unlock(t, b.hold)
		inSync(t, b.Home(t, "job"), b.Replicas(t))
		lock := b.careful(t, locktest.Timeout).NewFencedLock("job")
		hold := locktest.Acquire(t, lock, longLease)
		dead := b.Home(t, "job")
		dead.Kill(t)
		promoted := b.Failover(t, "job")
		require.NotSame(t, dead, promoted)
		require.Equal(t, map[string]string{hold.Owner(): "1"}, promoted.DoMap(t, "HGETALL", "job"))

		// The refusal must be the lock's, not that of a connection to the dead master.
		locktest.Unlock(t, locktest.Acquired(t,
			locktest.LockInBackground(t.Context(), b.second.NewLock("{job}connection"), longLease)))
		held := new(rlock.HeldError)
		_, err := b.second.NewFencedLock("job").TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorAs(t, err, &held)
		require.Equal(t, hold.Owner(), held.Owner)

		locktest.Eventually(t, func() bool {
			locked, err := lock.IsLocked(t.Context())
			return err == nil && locked
		}, "the first does not find its lock on the promoted replica")
		require.True(t, hold.Valid())
		locktest.Unlock(t, hold)
		require.Greater(t, locktest.Acquire(t, b.second.NewFencedLock("job"), longLease).Token(),
			hold.Token())
	})
}

// onFailover runs a test on each topology that can fail over, with a password, which cutting off
// replicas needs.
func onFailover(t *testing.T, test func(t *testing.T, b *breach)) {
	t.Helper()
	for _, topology := range []integration.Topology{integration.Sentinel, integration.Cluster} {
		t.Run(topology.String(), func(t *testing.T) {
			t.Parallel()
			test(t, newBreach(t, topology, integration.Password))
		})
	}
}

// careful returns another process, whose acquisitions wait that long for a replica.
func (b *breach) careful(t *testing.T, timeout time.Duration) *rlock.Client {
	t.Helper()
	c, err := rlock.New(b.Client(t),
		rlock.Options{SyncReplicas: 1, SyncTimeout: timeout, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, c) })
	return c
}
