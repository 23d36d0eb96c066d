package redlock_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// The names below are short for what locktest has for the tests of all locks.

const patience = locktest.Patience

type (
	outcome = locktest.Outcome
	process = locktest.Process
)

var (
	closeClient      = locktest.CloseClient
	take             = locktest.Take
	takeWith         = locktest.TakeWith
	unlock           = locktest.Unlock
	inBackground     = locktest.InBackground
	lockInBackground = locktest.LockInBackground
	result           = locktest.Result
	acquired         = locktest.Acquired
	eventually       = locktest.Eventually
	within           = locktest.Within
	bestOf           = locktest.BestOf
	startProcess     = locktest.StartProcess
)

// receive is locktest.Receive.
func receive[T any](t testing.TB, from <-chan T, otherwise string) T {
	t.Helper()
	return locktest.Receive(t, from, otherwise)
}

const (
	// promptly is how long something may take that must not wait for a server, a lease or a time-out, all of which take
	// seconds, on a machine that may be busy.
	promptly = 500 * time.Millisecond
	// longLease is longer than any test: a lock that is free before it ends was released.
	longLease = 10 * time.Minute
	// name is what tests call their lock, unless it matters.
	name = "order"
)

// atOnce has nodes counted from their first second on, and gives them more time for an answer than a busy machine takes: for
// tests of anything but that.
var atOnce = redlock.Options{FsyncAlways: true, NodeTimeout: time.Second}

// hasty is atOnce for tests in which nodes do not answer, and which wait for that.
var hasty = redlock.Options{FsyncAlways: true, NodeTimeout: 100 * time.Millisecond}

// startNodes starts n servers without persistence, all at once.
func startNodes(t testing.TB, n int, options ...redistest.Option) []*redistest.Server {
	t.Helper()
	servers := make([]*redistest.Server, n)
	for i := range servers {
		servers[i] = redistest.Start(t, options...)
	}
	return servers
}

// newClients returns a client of each server, as a process of its own would have them. They and their connections are closed
// in clean-up. Servers are called a, b, c and so on. They log nothing unless options say so.
func newClients(t testing.TB, servers []*redistest.Server, options rlock.Options, mutators ...func(*rueidis.ClientOption)) []*rlock.Client {
	t.Helper()
	clients := make([]*rlock.Client, len(servers))
	for i, s := range servers {
		options.Server = called(i)
		clients[i] = newClientOn(t, s.Client(t, mutators...), options)
	}
	return clients
}

// called is what the i-th server is called.
func called(i int) string { return string(rune('a' + i)) }

// newClientOn returns a client on the given connections, closed in clean-up.
func newClientOn(t testing.TB, redis rueidis.Client, options rlock.Options) *rlock.Client {
	t.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := rlock.New(redis, options)
	require.NoError(t, err)
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// proxied is newClients with a proxy in front of each server. In clean-up the proxies let everything pass before the clients
// are closed.
func proxied(t testing.TB, servers []*redistest.Server, options rlock.Options, mutators ...func(*rueidis.ClientOption)) ([]*rlock.Client, []*faultproxy.Proxy) {
	t.Helper()
	clients, proxies := make([]*rlock.Client, len(servers)), make([]*faultproxy.Proxy, len(servers))
	for i, s := range servers {
		p := faultproxy.Start(t, s.Addr())
		options.Server = called(i)
		through := func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }
		clients[i] = newClientOn(t, s.Client(t, append(mutators, through)...), options)
		proxies[i] = p
		t.Cleanup(func() {
			p.Delay(0)
			p.Pass()
			require.NoError(t, p.Accept())
		})
	}
	return clients, proxies
}

// warm makes the clients connect and the servers know the scripts.
func warm(t testing.TB, clients []*rlock.Client) {
	t.Helper()
	for _, c := range clients {
		l := redlock.NewOn("warm", redlock.Options{FsyncAlways: true, NodeTimeout: patience}, c)
		hold := take(t, l, longLease)
		require.NoError(t, hold.Extend(t.Context(), longLease))
		unlock(t, takeWith(hold.Context(), t, l, longLease))
		unlock(t, hold)
	}
}

// keysOf are the keys of all servers that answer, each after the name of its server, as in "a/order".
func keysOf(t testing.TB, servers ...*redistest.Server) []string {
	t.Helper()
	var keys []string
	for i, s := range servers {
		reply, err := s.Call("KEYS", "*")
		if err != nil {
			continue
		}
		for _, key := range reply.([]any) {
			keys = append(keys, fmt.Sprintf("%s/%v", called(i), key))
		}
	}
	return keys
}

// awaitFree waits until no server has a key, all of which must answer.
func awaitFree(t testing.TB, servers ...*redistest.Server) {
	t.Helper()
	for i, s := range servers {
		eventually(t, func() bool {
			keys, err := s.Call("DBSIZE")
			return err == nil && keys == int64(0)
		}, "nothing is held on "+called(i))
	}
}

// ownersOf are the owners that a lock has on each server, "" where it is free.
func ownersOf(t testing.TB, servers []*redistest.Server, lock string) []string {
	t.Helper()
	owners := make([]string, len(servers))
	for i, s := range servers {
		for owner := range s.DoMap(t, "HGETALL", lock) {
			owners[i] += owner
		}
	}
	return owners
}

// channelOf is the channel of a lock whose name has no braces.
func channelOf(lock string) string { return "redisson_lock__channel:{" + lock + "}" }

// awaitListeners waits until exactly n connections listen for releases of a lock on each of the servers.
func awaitListeners(t testing.TB, servers []*redistest.Server, lock string, n int64) {
	t.Helper()
	for i, s := range servers {
		eventually(t, func() bool {
			reply, err := s.Call("PUBSUB", "NUMSUB", channelOf(lock))
			return err == nil && reply.([]any)[1] == n
		}, fmt.Sprintf("%d listeners on %s", n, called(i)))
	}
}

// onAll runs f for each server, all at once. f must not use a testing.TB of this goroutine.
func onAll(servers []*redistest.Server, f func(s *redistest.Server)) {
	var all sync.WaitGroup
	for _, s := range servers {
		all.Go(func() { f(s) })
	}
	all.Wait()
}
