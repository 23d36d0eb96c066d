//go:build redis

package rlock_test

import (
	"context"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/locktest"
	"holdfast/internal/logtest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// One of the replicas is far away; otherwise it would mostly have the lock before the test can
// look.
func TestReplicasHaveALockOfAnyKindBeforeItsHolderKnows(t *testing.T) {
	t.Parallel()
	const distance = 30 * time.Millisecond
	master, replicas := startReplicated(t, 2)
	line := faultproxy.Start(t, master.Addr())
	address, port, err := net.SplitHostPort(line.Addr())
	require.NoError(t, err)
	replicas[1].Do(t, "REPLICAOF", address, port)
	redistest.WaitForReplica(t, master, replicas[1])
	line.Delay(distance)
	c := newClient(t, master, rlock.Options{SyncReplicas: 2, SyncTimeout: enough})
	onEveryKind(t, func(t *testing.T, k kind) {
		lock := k.lock(c, k.name)
		for _, wait := range []time.Duration{rlock.NoWait, longWait} {
			start := time.Now()
			hold, err := lock.TryLock(t.Context(), wait, longLease)
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(start), distance)
			for _, replica := range replicas {
				require.Equal(t, k.hash(hold.Owner(), 1), replica.DoMap(t, "HGETALL", k.name))
			}
			unlock(t, takeWith(hold.Context(), t, lock, longLease))
			unlock(t, hold)
			requireFree(t, master, k.name)
		}
	})
}

// A connection that was used before knows of acknowledgements older than the acquisition.
func TestReplicaThatBeginsToLagIsMissedAtTheNextAcquisition(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: enough,
		CommandTimeout: 2 * longWait}, redistest.OneConnection)
	for range 3 {
		unlock(t, take(t, c.NewLock("order"), longLease))
	}
	replicas[0].Pause(t)
	_, err := c.NewLock("order").TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Second))
	shortfall(t, err, 1, 0, time.Second/2) // half the lease
	requireFree(t, master, "order")
	replicas[0].Resume(t)
	unlock(t, take(t, c.NewLock("order"), longLease))
}

func TestAcquisitionForReplicasCostsOneWait(t *testing.T) {
	t.Parallel()
	master, _ := startReplicated(t, 1)
	c := newClient(t, master,
		rlock.Options{SyncReplicas: 1, SyncTimeout: enough, WatchdogLease: 4 * time.Second},
		redistest.OneConnection,
		func(o *rueidis.ClientOption) { o.Dialer.KeepAlive = time.Hour }) // no pings
	warm(t, c, "order")
	monitor := master.Monitor(t)
	for range 20 {
		hold := take(t, c.NewLock("order"), longLease)
		unlock(t, takeWith(hold.Context(), t, c.NewLock("order"), longLease))
		unlock(t, hold)
	}
	names := map[string]int{}
	for _, command := range monitor.Commands(t) {
		names[command[0]]++
		if command[0] == "wait" {
			require.Equal(t, []string{"wait", "1"}, command[:2])
		}
	}
	delete(names, "info")
	delete(names, "replconf")
	require.Equal(t, map[string]int{"evalsha": 4 * 20, "wait": 20}, names)

	renewed := take(t, c.NewLock("order"), rlock.Watchdog)
	waits := calls(master, "wait")
	waitForRenewal(t, []*rlock.Hold{renewed})
	require.Equal(t, waits, calls(master, "wait"), "a renewal waits for replicas")
	unlock(t, renewed)
}

func TestTooFewReplicasAreAnErrorAfterTheTimeForThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replicas, want         int
		timeout, lease, waited time.Duration
	}{
		"none at all": {0, 1, 200 * time.Millisecond, time.Duration(longLease),
			200 * time.Millisecond},
		"fewer than asked for": {1, 2, 4 * time.Second, time.Duration(longLease), // the one is in time
			4 * time.Second},
		"half the lease at most": {0, 1, time.Minute, 4 * time.Second, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master, _ := startReplicated(t, c.replicas)
			client := newClient(t, master, rlock.Options{SyncReplicas: c.want,
				SyncTimeout: c.timeout, CommandTimeout: 2 * longWait})
			start := time.Now()
			_, err := client.NewLock("order").TryLock(t.Context(), 2*longWait, rlock.Lease(c.lease))
			took := time.Since(start)
			shortfall(t, err, c.want, c.replicas, c.waited)
			require.GreaterOrEqual(t, took, c.waited)
			require.Less(t, took, c.waited+longWait/2)
			requireFree(t, master, "order")
		})
	}
}

// The waiter does not wait for replicas.
func TestAcquisitionUndoneForLackOfReplicasWakesItsWaiters(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	replicas[0].Pause(t)
	c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: time.Minute})
	other := newClient(t, master, rlock.Options{})
	attempt := lockInBackground(t.Context(), c.NewLock("order"), longLease)
	waitForBlocked(t, master, "1")
	waiter := lockInBackground(t.Context(), other.NewLock("order"), longLease)
	waitForListeners(t, master, "order", 1)
	endWait(t, master)
	short, next := result(t, attempt), result(t, waiter)
	shortfall(t, short.Err, 1, 0, time.Minute)
	require.NoError(t, next.Err)
	require.Less(t, next.At.Sub(short.At), locktest.Missed, "not woken")
	unlock(t, next.Hold)
}

// endWait makes a WAIT end as if its time were over.
func endWait(t *testing.T, s *redistest.Server) {
	t.Helper()
	blocked := regexp.MustCompile(`(?m)^id=(\d+) .* flags=\w*b`)
	client := blocked.FindStringSubmatch(s.DoString(t, "CLIENT", "LIST"))
	require.NotNil(t, client, "nobody waits")
	require.EqualValues(t, 1, s.DoInt(t, "CLIENT", "UNBLOCK", client[1], "TIMEOUT"))
}

func TestWaitingForALockOfAnotherKeepsNoConnection(t *testing.T) {
	t.Parallel()
	master, _ := startReplicated(t, 1)
	holder := newClient(t, master, rlock.Options{})
	// With two such connections, one of them for subscriptions, waiters that kept one would be in
	// each other's way.
	c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: enough},
		func(o *rueidis.ClientOption) { o.BlockingPoolSize = 2 })
	var holds []*rlock.Hold
	var waiters []<-chan outcome
	for _, name := range []string{"a", "b", "c", "d"} {
		holds = append(holds, take(t, holder.NewLock(name), longLease))
		waiters = append(waiters, lockInBackground(t.Context(), c.NewLock(name), longLease))
		waitForListeners(t, master, name, 1)
	}
	unlock(t, take(t, c.NewLock("another"), longLease))
	waitForBlocked(t, master, "0")
	for i, hold := range holds {
		unlock(t, hold)
		unlock(t, acquired(t, waiters[i]))
	}
}

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
	warnings := func() []string { return log.With("no replica is connected") }
	eventually(t, func() bool { return len(warnings()) > 0 }, "no warning") // in the background

	replica := redistest.StartReplica(t, master)
	eventually(t, func() bool {
		hold := take(t, lock, longLease)
		defer unlock(t, hold)
		return calls(master, "wait") > waits
	}, "never waits for the new replica")
	hold := take(t, lock, longLease)
	require.Equal(t, map[string]string{hold.Owner(): "1"}, replica.DoMap(t, "HGETALL", "order"))
	unlock(t, hold)
	require.Len(t, warnings(), 1)
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

// The second try, on another connection, finds that it holds the lock already. It must wait for
// replicas as the first did.
func TestConnectionKilledInWaitIsReplacedByOneThatWaitsAsWell(t *testing.T) {
	t.Parallel()
	master, replicas := startReplicated(t, 1)
	replicas[0].Pause(t)
	c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: enough})
	attempt := lockInBackground(t.Context(), c.NewFencedLock("order"), longLease)
	for range 2 {
		waitForBlocked(t, master, "1")
		master.Do(t, "CLIENT", "KILL", "TYPE", "normal")
	}
	waitForBlocked(t, master, "1")
	require.Empty(t, attempt, "acquired without a replica that has it")
	replicas[0].Resume(t)
	hold := acquired(t, attempt)
	require.EqualValues(t, 1, hold.Token())
	require.Equal(t, map[string]string{hold.Owner(): "1"}, counts(t, replicas[0]))
	unlock(t, hold)
	requireFree(t, master, "order")
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
	master.Do(t, "CLIENT", "KILL", "TYPE", "normal")
	require.ErrorIs(t, result(t, attempt).Err, rlock.ErrOutcomeUnknown)
	waitUntilFree(t, master, "order")
}

func TestCallerThatLeavesDuringWaitReturnsAtOnceAndLeavesNothing(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	master, replicas := startReplicated(t, 1)
	replicas[0].Pause(t)
	c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: timeout})
	ctx, cancel := context.WithCancel(t.Context())
	attempt := lockInBackground(ctx, c.NewLock("order"), longLease)
	eventually(t, func() bool { return exists(master, "order") }, "not taken")
	left := time.Now()
	cancel()
	o := result(t, attempt)
	require.ErrorIs(t, o.Err, context.Canceled)
	require.ErrorIs(t, o.Err, rlock.ErrOutcomeUnknown)
	require.Less(t, o.At.Sub(left), timeout/2, "it waited for the replica")
	waitUntilFree(t, master, "order")
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
	lock := newClient(t, s, rlock.Options{SyncReplicas: 1}, asUser).NewLock("order")
	requireRefusedAtOnce(t, lock, "NOPERM")
	waitUntilFree(t, s, "order")
	_, err := lock.TryLock(t.Context(), rlock.NoWait, longLease)
	requireRefusal(t, err, "NOPERM")
	waitUntilFree(t, s, "order")
}

func TestReplicatedLockFollowsASlotThatHasMoved(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, redistest.WithFastReplicas())
	from, to := cluster.Nodes[0], cluster.Nodes[1]
	replica := cluster.AddReplica(t, to)
	name := oneLockPerNode(t, cluster)[from]
	slot := cluster.Slot(t, name)
	one := newClientOn(t, cluster.Client(t),
		rlock.Options{SyncReplicas: 1, SyncTimeout: enough, CommandTimeout: 2 * longWait})
	connected := newClientOn(t, cluster.Client(t), rlock.Options{
		SyncReplicas: rlock.SyncConnected, SyncTimeout: enough, CommandTimeout: 2 * longWait})
	cluster.BeginMove(t, slot, from, to)
	cluster.FinishMove(t, slot, from, to)
	for _, c := range []*rlock.Client{one, connected} {
		hold := take(t, c.NewLock(name), longLease)
		require.Equal(t, map[string]string{hold.Owner(): "1"}, to.DoMap(t, "HGETALL", name))
		unlock(t, hold)
	}
	replica.Pause(t)
	_, err := connected.NewLock(name).TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Second))
	shortfall(t, err, 1, 0, time.Second/2)          // half the lease
	require.Empty(t, to.DoStrings(t, "KEYS", name)) // which asks only this node
}
