//go:build interop

package redisson_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

const (
	// watchdogLease is the lease of the watchdogs of both sides.
	watchdogLease = 4 * time.Second
	// longLease is longer than any wait in these tests: a waiter that acquires a lock earlier was
	// woken by its release.
	longLease = rlock.Lease(time.Minute)
	// soon bounds a wake-up by a message while nothing else runs.
	soon = 100 * time.Millisecond
	// told bounds it on a machine that is busy with other tests. A waiter that missed the message
	// sleeps longer.
	told = 3 * time.Second
	// asksAgain bounds the wait of one of this library without any message: it asks every 5 s.
	asksAgain = 15 * time.Second
)

// site is a Redis with clients of both sides.
type site struct {
	topology string
	nodes    []*redistest.Server
	cluster  *redistest.Cluster // nil if it is none
	// connect makes connections of the Go side: one for each independent server.
	connect []func(testing.TB) rueidis.Client
	java    *peer
	clients []string // of the peer, one for each independent server
}

// newSingle starts a server. Its locks are announced on classic channels.
func newSingle(t testing.TB, java *peer) *site {
	t.Helper()
	server := redistest.Start(t)
	s := &site{topology: "single", nodes: []*redistest.Server{server}}
	s.connect = append(s.connect, func(t testing.TB) rueidis.Client { return server.Client(t) })
	return s.with(t, java, watchdogLease)
}

// newCluster starts three masters. Both sides find out that they know sharded channels.
func newCluster(t testing.TB, java *peer) *site {
	t.Helper()
	cluster := redistest.StartCluster(t, 3)
	s := &site{topology: "cluster", nodes: cluster.Nodes, cluster: cluster}
	s.connect = append(s.connect, func(t testing.TB) rueidis.Client { return cluster.Client(t) })
	return s.with(t, java, watchdogLease)
}

// newMasters starts three servers that do not know each other.
func newMasters(t testing.TB, java *peer) *site {
	t.Helper()
	s := &site{topology: "single"}
	for range 3 {
		server := redistest.Start(t)
		s.nodes = append(s.nodes, server)
		s.connect = append(s.connect, func(t testing.TB) rueidis.Client { return server.Client(t) })
	}
	return s.with(t, java, watchdogLease)
}

// with returns the site with other clients on the Redisson side, those of the given peer.
func (s *site) with(t testing.TB, java *peer, watchdog time.Duration) *site {
	t.Helper()
	other := *s
	other.java = java
	other.clients = nil
	addresses := s.addresses()
	for range s.connect {
		client := newName()
		if s.cluster != nil {
			java.open(t, client, s.topology, addresses, watchdog)
		} else {
			java.open(t, client, s.topology, addresses[len(other.clients):len(other.clients)+1],
				watchdog)
		}
		other.clients = append(other.clients, client)
	}
	return &other
}

// addresses returns those of the nodes.
func (s *site) addresses() []string {
	addresses := make([]string, len(s.nodes))
	for i, node := range s.nodes {
		addresses[i] = node.Addr()
	}
	return addresses
}

// node returns the server of a key or a channel.
func (s *site) node(t testing.TB, key string) *redistest.Server {
	t.Helper()
	if s.cluster == nil {
		return s.nodes[0]
	}
	return s.cluster.Owner(t, s.cluster.Slot(t, key))
}

// listeners returns how many connections listen on a channel, classic or sharded. A waiter for a
// RedLock listens on each node that it does not hold yet.
func (s *site) listeners(t testing.TB, channel string) int {
	t.Helper()
	questions := []string{"NUMSUB"}
	if s.cluster != nil {
		questions = append(questions, "SHARDNUMSUB")
	}
	all := 0
	for _, node := range s.nodes {
		for _, question := range questions {
			n, err := strconv.Atoi(node.DoMap(t, "PUBSUB", question, channel)[channel])
			require.NoError(t, err)
			all += n
		}
	}
	return all
}

// queue returns the waiters for a fair lock.
func (s *site) queue(t testing.TB, name string) []string {
	t.Helper()
	return s.node(t, name).DoStrings(t, "LRANGE", wire.Prefix("redisson_lock_queue", name),
		"0", "-1")
}

// waitForWaiters returns when n owners wait for a lock, or at least one if it is not fair, and each
// listens for its release; for a MultiLock, for that of one part, since both sides wait for one
// part after another.
func (s *site) waitForWaiters(t testing.TB, l target, n int) {
	t.Helper()
	if !l.queues() {
		locktest.Eventually(t, func() bool {
			for _, channel := range l.channels() {
				if s.listeners(t, channel) > 0 {
					return true
				}
			}
			return false
		}, "no waiter listens for the release of "+strings.Join(l.names, ", "))
		return
	}
	locktest.Eventually(t, func() bool { return len(s.queue(t, l.name())) == n },
		"not all are queued for "+l.name())
	for _, owner := range s.queue(t, l.name()) {
		channel := wire.FairChannel(l.name(), owner)
		locktest.Eventually(t, func() bool { return s.listeners(t, channel) > 0 },
			"no waiter listens on "+channel)
	}
}

// waitForRegistrations returns when n waiters of this library are registered for a plain or fenced
// lock.
func (s *site) waitForRegistrations(t testing.TB, l target, n int) {
	t.Helper()
	key := wire.Prefix("holdfast_lock_waiters", l.name())
	locktest.Eventually(t, func() bool { return s.node(t, key).DoInt(t, "ZCARD", key) == int64(n) },
		"not all are registered for "+l.name())
}

// requireFree requires that nothing is left of a lock but the counter of a fenced one, and keys of
// this library that expire.
func (s *site) requireFree(t testing.TB, l target) {
	t.Helper()
	for _, name := range l.names {
		locktest.Eventually(t, func() bool { return len(s.keysLeft(t, name)) == 0 },
			"something is left of "+name)
	}
}

// keysLeft returns the keys of a lock that show a holder or waiters.
func (s *site) keysLeft(t testing.TB, name string) []string {
	t.Helper()
	var left []string
	for _, key := range s.keys(t, name) {
		switch {
		case key == wire.Prefix("redisson_lock_token", name),
			strings.HasPrefix(key, "redisson_unlock_latch:"),
			strings.HasPrefix(key, "holdfast_"):
		default:
			left = append(left, key)
		}
	}
	return left
}

// keys returns the keys that contain the name of a lock.
func (s *site) keys(t testing.TB, name string) []string {
	t.Helper()
	var found []string
	for _, key := range s.node(t, name).DoStrings(t, "KEYS", "*"+name+"*") {
		if isAbout(key, name) {
			found = append(found, key)
		}
	}
	return found
}

// alone runs a check for all contests in both directions, one after another, for measurements.
func alone(t *testing.T, check func(t *testing.T, contest func() contest, holds, waits side)) {
	t.Helper()
	for _, c := range contests {
		for _, d := range directions {
			t.Run(c.name+"/"+d.name, func(t *testing.T) { check(t, c.make, d.holds, d.waits) })
		}
	}
}

// onBoth runs a check in both directions, at the same time.
func onBoth(t *testing.T, check func(t *testing.T, holds, waits side)) {
	t.Helper()
	for _, d := range directions {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			check(t, d.holds, d.waits)
		})
	}
}

// onEachContest runs a check for all contests, each in both directions.
func onEachContest(
	t *testing.T, check func(t *testing.T, contest func() contest, holds, waits side),
) {
	t.Helper()
	for _, c := range contests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, holds, waits side) { check(t, c.make, holds, waits) })
		})
	}
}

// hgetall returns the hash of a lock.
func (s *site) hgetall(t testing.TB, name string) map[string]string {
	t.Helper()
	return s.node(t, name).DoMap(t, "HGETALL", name)
}

// pttl returns the rest of the lease of a lock according to Redis; nothing or less if there is
// none.
func (s *site) pttl(t testing.TB, name string) time.Duration {
	t.Helper()
	return time.Duration(s.node(t, name).DoInt(t, "PTTL", name)) * time.Millisecond
}
