//go:build redis

package redlock_test

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// newClients returns a client of each server, like those of a separate process. They are anonymous:
// tests count commands, and what says who a client is may come at any time.
func newClients(
	t testing.TB, servers []*redistest.Server, options rlock.Options,
	mutators ...func(*rueidis.ClientOption),
) (clients []*rlock.Client) {
	t.Helper()
	for i, s := range servers {
		options.Server, options.Anonymous = called(i), true
		clients = append(clients, newClientOn(t, s.Client(t, mutators...), options))
	}
	return clients
}

// proxied is newClients with a proxy before each server. In clean-up the proxies let everything
// pass before the clients are closed. The servers know the scripts.
func proxied(
	t testing.TB, servers []*redistest.Server, options rlock.Options,
) (clients []*rlock.Client, proxies []*faultproxy.Proxy) {
	t.Helper()
	for i, s := range servers {
		p := faultproxy.Start(t, s.Addr())
		options.Server, options.Anonymous = called(i), true
		through := func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }
		clients = append(clients, newClientOn(t, s.Client(t, through), options))
		proxies = append(proxies, p)
		t.Cleanup(func() {
			p.Delay(0)
			p.Pass()
			require.NoError(t, p.Accept())
		})
	}
	warm(t, clients)
	return clients, proxies
}

// warm makes the clients connect and the servers load the scripts.
func warm(t testing.TB, clients []*rlock.Client) {
	t.Helper()
	for _, c := range clients {
		l := redlock.NewOn("warm", atOnce, c)
		hold := acquired(t, lockInBackground(t.Context(), l, longLease))
		require.NoError(t, hold.Extend(t.Context(), longLease))
		unlock(t, takeWith(hold.Context(), t, l, longLease))
		unlock(t, hold)
	}
}

// count returns on how many of the servers the lock "order" is held.
func count(servers []*redistest.Server) (n int) {
	for _, s := range servers {
		if reply, err := s.Call("EXISTS", name); err == nil && reply == int64(1) {
			n++
		}
	}
	return n
}

// waitUntilFree waits until all servers reply that they have no key.
func waitUntilFree(t testing.TB, servers ...*redistest.Server) {
	t.Helper()
	for i, s := range servers {
		eventually(t, func() bool {
			keys, err := s.CallKeys()
			return err == nil && len(keys) == 0
		}, "nothing is held on "+called(i))
	}
}

// takeOnAll acquires the lock on every one of the servers. A connection may be broken at first, and
// for an explicit lease no node joins later.
func takeOnAll(
	t *testing.T, lock *redlock.Lock, servers []*redistest.Server, lease rlock.Lease,
) (hold *rlock.Hold) {
	t.Helper()
	eventually(t, func() bool {
		hold = acquired(t, lockInBackground(t.Context(), lock, lease))
		for range 1000 {
			if lock.Parts(hold) == len(servers) {
				return true
			}
			<-time.After(time.Millisecond)
		}
		unlock(t, hold)
		return false
	}, "it is held on every node")
	return hold
}
