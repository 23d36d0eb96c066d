//go:build redis

package rlock_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
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
	const timeout = 500 * time.Millisecond
	master, replicas := startReplicated(t, 1)
	c := newClient(t, master, rlock.Options{SyncReplicas: 1, SyncTimeout: timeout},
		redistest.OneConnection)
	for range 3 {
		unlock(t, take(t, c.NewLock("order"), longLease))
	}
	replicas[0].Pause(t)
	_, err := c.NewLock("order").TryLock(t.Context(), rlock.NoWait, longLease)
	shortfall(t, err, 1, 0, timeout)
	requireFree(t, master, "order")
	replicas[0].Resume(t)
	unlock(t, take(t, c.NewLock("order"), longLease))
}

// withoutPings keeps rueidis from pinging a connection that was idle for a second. If a command
// comes meanwhile, the connection pipelines for good, and is cleaned with four commands after each
// use.
func withoutPings(o *rueidis.ClientOption) { o.Dialer.KeepAlive = time.Hour }

func TestAcquisitionForReplicasCostsOneWaitAndOneConnection(t *testing.T) {
	t.Parallel()
	master, _ := startReplicated(t, 1)
	c := newClient(t, master,
		rlock.Options{SyncReplicas: 1, SyncTimeout: enough, WatchdogLease: 4 * time.Second},
		redistest.OneConnection, withoutPings)
	warm(t, c, "order")
	connections := func() int {
		return len(strings.Split(master.DoString(t, "CLIENT", "LIST", "TYPE", "normal"), "\n"))
	}
	before := connections()
	monitor := master.Monitor(t)
	for range 20 {
		hold := take(t, c.NewLock("order"), longLease)
		inner := takeWith(hold.Context(), t, c.NewLock("order"), longLease)
		unlock(t, inner)
		unlock(t, hold)
	}
	require.LessOrEqual(t, connections(), before+1, "connections pile up") // the monitor
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
	deadline := renewed.Deadline()
	eventually(t, func() bool { return renewed.Deadline().After(deadline) }, "not renewed")
	require.Equal(t, waits, calls(master, "wait"), "a renewal waits for replicas")
	unlock(t, renewed)
}

func TestTooFewReplicasAreAnErrorAfterTheTimeForThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replicas, want int
		timeout, lease time.Duration
		waited         time.Duration
	}{
		"none at all":            {0, 1, 200 * time.Millisecond, longLease, 200 * time.Millisecond},
		"fewer than asked for":   {1, 2, time.Second, longLease, time.Second},
		"half the lease at most": {0, 1, time.Minute, 4 * time.Second, 2 * time.Second},
		"of the watchdog too":    {0, 1, time.Minute, rlock.Watchdog, 3 * time.Second},
		"the shortest lease":     {0, 1, time.Minute, 3 * time.Millisecond, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master, _ := startReplicated(t, c.replicas)
			client := newClient(
				t,
				master,
				rlock.Options{SyncReplicas: c.want, SyncTimeout: c.timeout,
					CommandTimeout: 2 * longWait, WatchdogLease: 6 * time.Second},
			)
			for _, wait := range []time.Duration{rlock.NoWait, 2 * longWait} {
				start := time.Now()
				_, err := client.NewLock("order").TryLock(t.Context(), wait, c.lease)
				took := time.Since(start)
				if c.waited == time.Millisecond {
					require.Less(t, took, longWait)
					waitUntilFree(t, master, "order")
					continue // such a lease may be over before the reply
				}
				shortfall(t, err, c.want, c.replicas, c.waited)
				require.GreaterOrEqual(t, took, c.waited)
				require.Less(t, took, c.waited+longWait/2)
				requireFree(t, master, "order")
			}
		})
	}
}

func TestWaitingForALockOfAnotherKeepsNoConnection(t *testing.T) {
	t.Parallel()
	master, _ := startReplicated(t, 1)
	holder := newClient(t, master, rlock.Options{})
	// With two such connections, one of them for subscriptions, waiters that kept one would be in
	// each other's way.
	c := newClient(
		t,
		master,
		rlock.Options{SyncReplicas: 1, SyncTimeout: enough},
		func(o *rueidis.ClientOption) {
			o.BlockingPoolSize = 2
		},
	)
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
