package integration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// everywhere runs a test on servers of each topology: plain ones, and as they are in production.
func everywhere(t *testing.T, topologies []integration.Topology,
	test func(t *testing.T, servers *integration.Servers)) {
	t.Helper()
	for _, topology := range topologies {
		for name, variants := range map[string][]integration.Variant{
			"plain": nil, "user over TLS": {integration.TLS, integration.User},
		} {
			t.Run(topology.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, integration.Start(t, topology, variants...))
			})
		}
	}
}

// Every kind of lock is held by one client and waited for by another one, which is woken by the
// release.
func TestEveryLockIsHandedOverEverywhere(t *testing.T) {
	t.Parallel()
	everywhere(t, integration.Topologies(), func(t *testing.T, servers *integration.Servers) {
		mine, theirs := newClients(t, servers), newClients(t, servers)
		for kind, lock := range kinds {
			if kind == "fair" && redistest.ScriptsLack("TIME") {
				continue // see docs/servers.md
			}
			for i := range mine {
				requireHandedOver(t, servers, kinds[excluding(kind)](mine[i], kind),
					lock(theirs[i], kind), kind)
			}
		}
		requireHandedOver(t, servers, multilock.New(pairs(mine)...),
			multilock.New(pairs(theirs)...), "left", "right")
		servers.Each(func(server *redistest.Server) {
			names := []string{"reentrant", "fair", "read", "write", "fenced", "left", "right"}
			for _, name := range names {
				locktest.Eventually(t, func() bool {
					return len(server.DoStrings(t, "KEYS", name)) == 0
				}, name+" is left on "+server.Addr())
			}
		})
	})
}

// pairs returns two plain locks of each client.
func pairs(clients []*rlock.Client) (locks []rlock.Locker) {
	for _, client := range clients {
		locks = append(locks, client.NewLock("left"), client.NewLock("right"))
	}
	return locks
}

func TestRedLockIsHandedOverOnIndependentMasters(t *testing.T) {
	t.Parallel()
	five := []integration.Topology{integration.Masters(5)}
	everywhere(t, five, func(t *testing.T, servers *integration.Servers) {
		const name = "order"
		// No lock is held when servers restart here. Otherwise fresh servers would not be counted
		// for the duration of a lease.
		options := redlock.Options{FsyncAlways: true, NodeTimeout: nodeTimeout}
		holder := redlock.NewOn(name, options, newClients(t, servers)...)
		waiter := redlock.NewOn(name, options, newClients(t, servers)...)
		requireHandedOver(t, servers, holder, waiter, name)

		masters := servers.Masters(t)
		masters[0].Kill(t)
		masters[1].Isolate(t)
		// a quorum is left
		hold, err := holder.TryLock(t.Context(), locktest.Timeout, longLease)
		require.NoError(t, err)
		locktest.Unlock(t, hold)
		servers.Heal(t)
	})
}

// nodeTimeout is long, because the machine may be busy starting servers.
const nodeTimeout = time.Second
