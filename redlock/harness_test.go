package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
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

// Short names for what locktest shares with the tests of all locks.

const longWait = locktest.Timeout

type (
	outcome = locktest.Outcome
	process = locktest.Process
)

var (
	closeClient      = locktest.CloseClient
	take             = locktest.Acquire
	takeWith         = locktest.AcquireWith
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

// receive calls locktest.Receive.
func receive[T any](t testing.TB, from <-chan T, otherwise string) T {
	t.Helper()
	return locktest.Receive(t, from, otherwise)
}

const (
	// promptly bounds what takes milliseconds, on a busy machine too. What it must not wait for
	// takes longer: a waiter's next request, 5 s; a command without reply, 3 s; a lease, more.
	promptly = 2 * time.Second
	// soon is what the best of several tries must take less than: the pause after a split vote may
	// be shorter than promptly.
	soon = 500 * time.Millisecond
	// longLease outlasts any test: a lock that becomes free was released.
	longLease = 10 * time.Minute
	// name is the name of the tests' lock, unless it matters.
	name = "order"
)

// atOnce counts nodes from their first second, and gives them more time to reply than a busy
// machine needs. It is for tests of anything else.
var atOnce = redlock.Options{FsyncAlways: true, NodeTimeout: 3 * time.Second}

// hasty is atOnce for tests that wait for nodes that do not reply.
var hasty = redlock.Options{FsyncAlways: true, NodeTimeout: 100 * time.Millisecond}

// startNodes starts n servers without persistence, all at once.
func startNodes(t testing.TB, n int, options ...redistest.Option) []*redistest.Server {
	t.Helper()
	return redistest.StartAll(t, n, options...)
}

// newClients returns a client of each server, like those of a separate process. They and their
// connections are closed in clean-up. Servers are called a, b, c and so on. They log nothing unless
// options say otherwise, and are anonymous: tests count commands, and what says who a client is may
// come at any time.
func newClients(
	t testing.TB, servers []*redistest.Server, options rlock.Options,
	mutators ...func(*rueidis.ClientOption),
) []*rlock.Client {
	t.Helper()
	clients := make([]*rlock.Client, len(servers))
	for i, s := range servers {
		options.Server, options.Anonymous = called(i), true
		clients[i] = newClientOn(t, s.Client(t, mutators...), options)
	}
	return clients
}

// called returns the name of the i-th server.
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

// proxied is newClients with a proxy before each server. In clean-up the proxies let everything
// pass before the clients are closed. The clients are anonymous.
func proxied(
	t testing.TB, servers []*redistest.Server, options rlock.Options,
	mutators ...func(*rueidis.ClientOption),
) ([]*rlock.Client, []*faultproxy.Proxy) {
	t.Helper()
	clients, proxies := make([]*rlock.Client, len(servers)), make([]*faultproxy.Proxy, len(servers))
	for i, s := range servers {
		p := faultproxy.Start(t, s.Addr())
		options.Server, options.Anonymous = called(i), true
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

// warm makes the clients connect and the servers load the scripts.
func warm(t testing.TB, clients []*rlock.Client) {
	t.Helper()
	for _, c := range clients {
		l := redlock.NewOn("warm", redlock.Options{FsyncAlways: true, NodeTimeout: longWait}, c)
		hold := take(t, l, longLease)
		require.NoError(t, hold.Extend(t.Context(), longLease))
		unlock(t, takeWith(hold.Context(), t, l, longLease))
		unlock(t, hold)
	}
}

// keysOf returns the keys of all servers that reply, each after its server's name, as in "a/order".
func keysOf(t testing.TB, servers ...*redistest.Server) []string {
	t.Helper()
	var keys []string
	for i, s := range servers {
		all, err := s.CallKeys()
		if err != nil {
			continue
		}
		for _, key := range all {
			keys = append(keys, called(i)+"/"+key)
		}
	}
	return keys
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

// ownersOf returns the owner of a lock on each server, or "".
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

// channelOf returns the channel of a lock whose name has no braces.
func channelOf(lock string) string { return "redisson_lock__channel:{" + lock + "}" }

// waitForListeners waits until exactly n connections listen for releases of a lock on each of the
// servers.
func waitForListeners(t testing.TB, servers []*redistest.Server, lock string, n int64) {
	t.Helper()
	for i, s := range servers {
		eventually(t, func() bool {
			reply, err := s.Call("PUBSUB", "NUMSUB", channelOf(lock))
			return err == nil && reply.([]any)[1] == n
		}, fmt.Sprintf("%d listeners on %s", n, called(i)))
	}
}

// quorumError returns the *QuorumError in err, whose nodes have one error each, and are named in
// its text.
func quorumError(t testing.TB, err error) *redlock.QuorumError {
	t.Helper()
	var e *redlock.QuorumError
	require.ErrorAs(t, err, &e)
	require.Equal(t, name, e.Lock)
	require.ErrorContains(t, err, "holdfast: redlock \"order\": ")
	for _, n := range e.Nodes {
		require.NotEmpty(t, n.Server)
		require.Error(t, n.Err)
		require.ErrorContains(t, err, n.Server)
	}
	return e
}

// startFive starts five nodes and a client of each.
func startFive(t testing.TB, options rlock.Options) ([]*redistest.Server, []*rlock.Client) {
	t.Helper()
	servers := startNodes(t, 5)
	return servers, newClients(t, servers, options)
}

// count returns on how many of the servers the lock "order" is held.
func count(servers []*redistest.Server) int {
	n := 0
	for _, s := range servers {
		if reply, err := s.Call("EXISTS", name); err == nil && reply == int64(1) {
			n++
		}
	}
	return n
}

// waitUntilHeld waits until the lock "order" has an owner on all of the servers.
func waitUntilHeld(t testing.TB, servers []*redistest.Server) {
	t.Helper()
	eventually(t, func() bool { return count(servers) == len(servers) },
		"the lock is held on every node")
}

// lostTo requires that the hold ends soon with ErrLost, that the error has each of the words, and
// that a release reports it as well.
func lostTo(t testing.TB, hold *rlock.Hold, words ...string) {
	t.Helper()
	ctx := hold.Context()
	receive(t, ctx.Done(), "the context of a lost hold has not ended")
	lost := new(rlock.LostError)
	require.ErrorAs(t, context.Cause(ctx), &lost)
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.False(t, hold.Valid())
	for _, word := range words {
		require.ErrorContains(t, lost, word)
	}
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrLost)
	require.ErrorIs(t, hold.Unlock(t.Context()), rlock.ErrNotHeld)
}

// takeOnAll acquires the lock on every one of the servers. A connection may be broken at first, and
// for an explicit lease no node joins later.
func takeOnAll(
	t *testing.T, lock *redlock.Lock, servers []*redistest.Server, lease time.Duration,
) *rlock.Hold {
	t.Helper()
	for range 20 {
		hold := acquired(t, lockInBackground(t.Context(), lock, lease))
		for end := time.Now().Add(promptly); time.Now().Before(end); {
			if lock.Parts(hold) == len(servers) {
				return hold
			}
			pause(nil, time.Millisecond)
		}
		unlock(t, hold)
	}
	require.FailNow(t, "never held on all servers")
	return nil
}

// scriptCalls returns how many scripts the servers were asked to run since the last reset.
func scriptCalls(t testing.TB, servers []*redistest.Server) int {
	t.Helper()
	n := 0
	for _, s := range servers {
		calls := s.CommandStats(t)
		n += calls["evalsha"] + calls["eval"]
	}
	return n
}

func resetStats(t testing.TB, servers []*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		s.ResetStats(t)
	}
}

// queueUp waits for a lock in a goroutine, and returns when it is queued.
func queueUp(
	ctx context.Context, t testing.TB, l *redlock.Lock, lease time.Duration,
) <-chan outcome {
	t.Helper()
	w := waiting{ctx, make(chan struct{}, 1)}
	done := lockInBackground(w, l, lease)
	receive(t, w.begun, "it does not stand in line")
	return done
}

// give makes another program, such as a Java one, hold the lock for a long time, with another owner
// on each node.
func give(t testing.TB, servers []*redistest.Server) {
	t.Helper()
	for i, s := range servers {
		s.Do(t, "HSET", name, "somebody:"+strconv.Itoa(i), "1")
		s.Do(t, "PEXPIRE", name, strconv.FormatInt(longLease.Milliseconds(), 10))
	}
}

// giveOne is give for one owner on all nodes, and any lock.
func giveOne(t testing.TB, servers []*redistest.Server, lock string) {
	t.Helper()
	for _, s := range servers {
		s.Do(t, "HSET", lock, "somebody", "1")
		s.Do(t, "PEXPIRE", lock, strconv.FormatInt(longLease.Milliseconds(), 10))
	}
}

// giveBack ends give as Redisson does.
func giveBack(t testing.TB, servers []*redistest.Server, lock string) {
	t.Helper()
	for _, s := range servers {
		s.Do(t, "DEL", lock)
		s.Do(t, "PUBLISH", channelOf(lock), "0")
	}
}

// callsDuring returns how many scripts the servers are asked to run in d, once they are quiet.
func callsDuring(t testing.TB, servers []*redistest.Server, d time.Duration) int {
	t.Helper()
	waitUntilQuiet(t, servers)
	resetStats(t, servers)
	<-time.After(d)
	return scriptCalls(t, servers)
}

// waitUntilQuiet waits until the servers have been asked to run no script for a moment, or a test's
// time is over.
func waitUntilQuiet(t testing.TB, servers []*redistest.Server) {
	t.Helper()
	const moment = 200 * time.Millisecond
	for end := time.Now().Add(longWait / 2); time.Now().Before(end); {
		resetStats(t, servers)
		<-time.After(moment)
		if scriptCalls(t, servers) == 0 {
			return
		}
	}
}

// pause waits for d or until done is closed.
func pause(done <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}
