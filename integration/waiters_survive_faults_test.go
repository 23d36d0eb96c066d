package integration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// requireWaitersServed has all kinds of locks held and waited for when the fault begins, and
// released afterwards. The waiters must acquire them, though perhaps not at once.
func requireWaitersServed(t *testing.T, servers *integration.Servers, fault func(name string)) {
	t.Helper()
	holder, waiter := newClient(t, servers.Client(t), "a"), newClient(t, servers.Client(t), "a")
	holds, waits := map[string]*rlock.Hold{}, map[string]<-chan locktest.Outcome{}
	name := func(kind string) string { return "{job}" + kind } // all of them in one slot
	for kind, lock := range kinds {
		holds[kind] = locktest.Acquire(t, kinds[excluding(kind)](holder, name(kind)), longLease)
		waits[kind] = locktest.LockInBackground(t.Context(), lock(waiter, name(kind)), longLease)
	}
	locktest.Eventually(t, func() bool { return listeners(servers, "job") >= len(kinds) },
		"not all waiters listen")

	fault("{job}")
	for kind := range kinds {
		require.True(t, holds[kind].Valid(), kind)
		locktest.Unlock(t, holds[kind])
		locktest.Unlock(t, locktest.Acquired(t, waits[kind]))
	}
}

// listeners returns how many channels of locks with the tag have a subscriber.
func listeners(servers *integration.Servers, tag string) (n int) {
	servers.Each(func(server *redistest.Server) {
		for _, command := range []string{"CHANNELS", "SHARDCHANNELS"} {
			reply, err := server.Call("PUBSUB", command, "redisson_*{"+tag+"}*")
			if channels, _ := reply.([]any); err == nil {
				n += len(channels)
			}
		}
	})
	return n
}

func TestWaitersGetTheirLocksAfterTheDeathOfTheMaster(t *testing.T) {
	t.Parallel()
	for _, topology := range []integration.Topology{integration.Sentinel, integration.Cluster} {
		t.Run(topology.String(), func(t *testing.T) {
			t.Parallel()
			servers := integration.Start(t, topology)
			requireWaitersServed(t, servers, func(name string) {
				master := servers.Home(t, name)
				inSync(t, master, servers.Replicas(t))
				master.Kill(t)
				require.NotSame(t, master, servers.Failover(t, name))
			})
			servers.Heal(t)
		})
	}
}

// inSync waits until the replicas of a master have what it has.
func inSync(t *testing.T, master *redistest.Server, replicas []*redistest.Server) {
	t.Helper()
	for _, replica := range replicas {
		if replica.DoStrings(t, "ROLE")[2] == portOf(t, master) {
			redistest.WaitForReplica(t, master, replica)
		}
	}
}

func TestWaitersGetTheirLocksAfterTheirSlotHasMoved(t *testing.T) {
	t.Parallel()
	servers := integration.Start(t, integration.Cluster)
	requireWaitersServed(t, servers, func(name string) {
		from := servers.Home(t, name)
		to := servers.MoveSlot(t, name)
		require.NotSame(t, from, to)
		require.Same(t, to, servers.Home(t, name))
	})
}

func TestWaitersGetTheirLocksOfAServerThatWasCutOff(t *testing.T) {
	t.Parallel()
	for _, topology := range []integration.Topology{integration.Single, integration.Replicated} {
		t.Run(topology.String(), func(t *testing.T) {
			t.Parallel()
			servers := integration.Start(t, topology, integration.AppendOnly)
			requireWaitersServed(t, servers, func(name string) {
				servers.Home(t, name).Isolate(t)
				servers.Heal(t)
			})
		})
	}
}
