package integration_test

import (
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/integration"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

// longLease is longer than any wait: a lock acquired before its end was released.
const longLease = rlock.Lease(time.Minute)

// soon is how long a woken waiter may take to acquire the lock on a busy machine. A waiter that was
// not woken asks again every 5 s.
const soon = 2 * time.Second

// kinds are the locks of rlock.
var kinds = map[string]func(c *rlock.Client, name string) rlock.Locker{
	"reentrant": func(c *rlock.Client, name string) rlock.Locker { return c.NewLock(name) },
	"fair":      func(c *rlock.Client, name string) rlock.Locker { return c.NewFairLock(name) },
	"read": func(c *rlock.Client, name string) rlock.Locker {
		return c.NewReadWriteLock(name).Read()
	},
	"write": func(c *rlock.Client, name string) rlock.Locker {
		return c.NewReadWriteLock(name).Write()
	},
	"fenced": func(c *rlock.Client, name string) rlock.Locker { return c.NewFencedLock(name) },
}

// excluding returns a kind that excludes the given kind.
func excluding(kind string) string {
	if kind == "read" {
		return "write"
	}
	return kind
}

// portOf returns the port of a server, as ROLE names it.
func portOf(t *testing.T, server *redistest.Server) string {
	t.Helper()
	_, port, err := net.SplitHostPort(server.Addr())
	require.NoError(t, err)
	return port
}

// newClient returns a process's lock client, closed in clean-up.
func newClient(t *testing.T, redis rueidis.Client, server string) *rlock.Client {
	t.Helper()
	c, err := rlock.New(redis, rlock.Options{Server: server, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { locktest.CloseClient(t, c) })
	return c
}

// newClients returns the lock clients of a process, one for each Redis.
func newClients(t *testing.T, servers *integration.Servers) []*rlock.Client {
	t.Helper()
	var clients []*rlock.Client
	for i, redis := range servers.Clients(t) {
		clients = append(clients, newClient(t, redis, string(rune('a'+i))))
	}
	return clients
}

// waitForWaiter waits until a client listens on a channel of one of the locks.
func waitForWaiter(t *testing.T, servers *integration.Servers, names ...string) {
	t.Helper()
	locktest.Eventually(t, func() bool {
		listens := false
		servers.Each(func(server *redistest.Server) {
			for _, name := range names {
				listens = listens || hasListener(server, name)
			}
		})
		return listens
	}, "nobody listens for "+strings.Join(names, " or "))
}

// hasListener reports whether a channel of the lock has a subscriber on the server.
func hasListener(server *redistest.Server, name string) bool {
	for _, command := range []string{"CHANNELS", "SHARDCHANNELS"} {
		reply, err := server.Call("PUBSUB", command, "*{"+name+"}*")
		channels, _ := reply.([]any)
		if err == nil && len(channels) > 0 {
			return true
		}
	}
	return false
}

// requireHandedOver has one locker hold a lock while another waits for it. The waiter must acquire
// it as soon as it is released, and then release it. The names are those of the lock, or of its
// parts.
func requireHandedOver(t *testing.T, servers *integration.Servers, holder, waiter rlock.Locker,
	names ...string) {
	t.Helper()
	locktest.BestOf(t, soon, func() time.Duration {
		hold := locktest.Acquire(t, holder, longLease)
		_, err := waiter.TryLock(t.Context(), rlock.NoWait, longLease)
		require.ErrorIs(t, err, rlock.ErrNotAcquired)
		done := locktest.LockInBackground(t.Context(), waiter, longLease)
		waitForWaiter(t, servers, names...)
		start := time.Now()
		locktest.Unlock(t, hold)
		locktest.Unlock(t, locktest.Acquired(t, done))
		return time.Since(start)
	})
}
