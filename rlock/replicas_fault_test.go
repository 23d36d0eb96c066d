//go:build redis

package rlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// The second try, on another connection, finds that it holds the lock already. It must wait for
// replicas as the first did.
func TestConnectionKilledInWaitIsReplacedByOneThatWaitsAsWell(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	onEveryKind(t, func(t *testing.T, k kind) {
		replicas[0].Pause(t)
		c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: enough})
		attempt := lockInBackground(t.Context(), k.lock(c, k.name), longLease)
		for range 2 {
			waitForBlocked(t, master, "1")
			require.Equal(t, 1, killWaiting(t, master))
		}
		waitForBlocked(t, master, "1")
		require.Empty(t, attempt, "acquired without a replica that has it")
		replicas[0].Resume(t)
		hold := acquired(t, attempt)
		require.Equal(t, k.hash(hold.Owner(), 1), replicas[0].DoMap(t, "HGETALL", k.name))
		unlock(t, hold)
		requireFree(t, master, k.name)
	})
}

// killWaiting kills the connections blocked in WAIT, and returns how many there were.
func killWaiting(t testing.TB, s *redistest.Server) (killed int) {
	t.Helper()
	for line := range strings.Lines(s.DoString(t, "CLIENT", "LIST")) {
		if !strings.Contains(line, " cmd=wait ") {
			continue
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		killed += int(s.DoInt(t, "CLIENT", "KILL", "ID", id))
	}
	return killed
}

func TestAttemptWithoutWaitWhoseConnectionIsKilledInWaitIsUnconfirmedAndUndone(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	replicas[0].Pause(t)
	c := newClient(t, master,
		rlock.Options{SyncReplicas: 1, SyncTimeout: enough, CommandTimeout: longWait})
	attempt := inBackground(func() (*rlock.Hold, error) {
		return c.NewLock("order").TryLock(t.Context(), rlock.NoWait, longLease)
	})
	waitForBlocked(t, master, "1")
	require.Equal(t, 1, killWaiting(t, master))
	require.ErrorIs(t, result(t, attempt).Err, rlock.ErrOutcomeUnknown)
	waitUntilFree(t, master, "order")
}

func TestCallerThatLeavesDuringWaitReturnsAtOnceAndLeavesNothing(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	master, replicas := startReplicated(t, 1)
	replicas[0].Pause(t)
	onEveryKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: timeout})
		ctx, cancel := context.WithCancel(t.Context())
		attempt := lockInBackground(ctx, k.lock(c, k.name), longLease)
		eventually(t, func() bool { return exists(master, k.name) }, "not taken")
		left := time.Now()
		cancel()
		o := result(t, attempt)
		require.ErrorIs(t, o.Err, context.Canceled)
		require.ErrorIs(t, o.Err, rlock.ErrOutcomeUnknown)
		require.Less(t, o.At.Sub(left), timeout/2, "it waited for the replica")
		waitUntilFree(t, master, k.name)
	})
}

func TestServerThatHangsDuringWaitDelaysNeitherTryLockNorClose(t *testing.T) {
	t.Parallel()
	const (
		wait    = 3 * time.Second
		timeout = 300 * time.Millisecond
	)
	master, replicas := startReplicated(t, 1)
	replicas[0].Pause(t)
	for _, closing := range []bool{false, true} {
		// rueidis soon gives up all commands by itself but a WAIT.
		c := newClient(t, master,
			rlock.Options{SyncReplicas: 1, SyncTimeout: enough, CommandTimeout: timeout},
			func(o *rueidis.ClientOption) { o.ConnWriteTimeout = timeout })
		start := time.Now()
		attempt := inBackground(
			func() (*rlock.Hold, error) { return c.NewLock("order").TryLock(t.Context(), wait, longLease) },
		)
		waitForBlocked(t, master, "1")
		master.Pause(t)
		o := result(t, attempt)
		require.ErrorIs(t, o.Err, rlock.ErrOutcomeUnknown)
		require.NotErrorIs(t, o.Err, rlock.ErrNotAcquired)
		require.GreaterOrEqual(t, o.At.Sub(start), wait)
		require.Less(t, o.At.Sub(start), wait+2*time.Second)
		if closing {
			closeClient(t, c) // while the server does not reply
		}
		master.Resume(t)
		if !closing {
			waitUntilFree(t, master, "order")
		}
	}
}

func TestCloseEndsAWaitForReplicasAndUndoesTheAcquisition(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	master, replicas := startReplicated(t, 1)
	replicas[0].Pause(t)
	c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: timeout})
	attempt := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	waitForBlocked(t, master, "1")
	closing := time.Now()
	closeClient(t, c)
	o := result(t, attempt)
	require.ErrorIs(t, o.Err, rlock.ErrClosed)
	require.Less(t, o.At.Sub(closing), timeout/2, "it waited for the replica")
	requireFree(t, master, "order")
}

// If it were not undone, it would stay held for its whole lease, by nobody.
func TestServerThatRefusesToWaitForReplicasIsNotLeftWithALock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	restrict(t, s, "-wait")
	c := newClient(t, s, rlock.Options{SyncReplicas: 1}, asUser)
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(c, k.name)
		requireRefusedAtOnce(t, lock, "NOPERM")
		waitUntilFree(t, s, k.name)
		_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
		requireRefusal(t, err, "NOPERM")
		waitUntilFree(t, s, k.name)
	})
}
