package multilock_test

import (
	"crypto/sha1"
	"encoding/hex"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// Short names for what locktest shares with the tests of all locks.

const longWait = locktest.Timeout

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
	// longLease outlasts any test: a lock that becomes free was released.
	longLease = 10 * time.Minute
)

// newClient returns a client with connections of its own to the server, both closed in clean-up. It
// logs nothing unless options say otherwise.
func newClient(
	t testing.TB, s *redistest.Server, options rlock.Options,
	mutators ...func(*rueidis.ClientOption),
) *rlock.Client {
	t.Helper()
	return newClientOn(t, s.Client(t, mutators...), options)
}

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

// forceUnlock frees a lock, which must be held.
func forceUnlock(t testing.TB, l *rlock.Lock) {
	t.Helper()
	held, err := l.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held, l.Name())
}

// waitForListener waits until a client listens for releases of a plain or fenced lock, whose name
// has no braces: from then on it waits for that lock.
func waitForListener(t testing.TB, s *redistest.Server, lock string) {
	t.Helper()
	eventually(t, func() bool {
		return s.DoStrings(t, "PUBSUB", "NUMSUB", "redisson_lock__channel:{"+lock+"}")[1] != "0"
	}, "a client waits for "+lock)
}

// waitForWaiter waits until part a is held and a client listens for releases of b: from then on an
// acquisition of both waits for b.
func waitForWaiter(t testing.TB, s *redistest.Server) {
	t.Helper()
	eventually(t, func() bool { return exists(t, s, "a") }, "a is taken")
	waitForListener(t, s, "b")
}

// exists reports whether the server has the key.
func exists(t testing.TB, s *redistest.Server, key string) bool {
	t.Helper()
	return s.DoInt(t, "EXISTS", key) == 1
}

// levels returns the hold counts of a plain, fair or fenced lock, one for each owner.
func levels(t testing.TB, s *redistest.Server, lock string) []string {
	t.Helper()
	return s.DoStrings(t, "HVALS", lock)
}

// lasts returns the rest of the lease of a lock.
func lasts(t testing.TB, s *redistest.Server, lock string) time.Duration {
	t.Helper()
	return time.Duration(s.DoInt(t, "PTTL", lock)) * time.Millisecond
}

// whatLasts has the prefixes of keys that outlast a lock by design: a fenced lock's counter stays
// for ever, this library's own keys stay for some seconds.
var whatLasts = []string{"redisson_lock_token:", "holdfast_rwlock_"}

// left returns the keys of a server by which a lock is held or queued for.
func left(t testing.TB, s *redistest.Server) []string {
	t.Helper()
	return slices.DeleteFunc(s.Keys(t), func(key string) bool {
		return slices.ContainsFunc(whatLasts,
			func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
}

// requireFree requires that nothing on the servers holds a lock or queues for one.
func requireFree(t testing.TB, servers ...*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		require.Empty(t, left(t, s))
	}
}

// waitUntilFree waits until requireFree would pass.
func waitUntilFree(t testing.TB, servers ...*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		eventually(t, func() bool { return len(left(t, s)) == 0 }, "nothing is held on "+s.Addr())
	}
}

// scriptCalls returns how many scripts the server was asked to run since the monitor was last read.
func scriptCalls(t testing.TB, m *redistest.Monitor) int {
	t.Helper()
	n := 0
	for _, command := range m.Commands(t) {
		require.Equal(t, "evalsha", command[0], strconv.Quote(strings.Join(command, " ")))
		n++
	}
	return n
}

// pair is two servers with a client each. Locks are acquired in the order of the clients' names.
type pair struct {
	first, second   *redistest.Server
	client, another *rlock.Client // of the first and of the second
}

// startPair starts two servers. The rest of the options goes to both clients.
func startPair(t testing.TB, options rlock.Options) *pair {
	t.Helper()
	p := &pair{first: redistest.Start(t), second: redistest.Start(t)}
	p.client, p.another = p.clients(t, options)
	return p
}

// clients returns more clients of both servers, like those of another process.
func (p *pair) clients(t testing.TB, options rlock.Options) (client, another *rlock.Client) {
	t.Helper()
	options.Server = "first"
	client = newClient(t, p.first, options)
	options.Server = "second"
	return client, newClient(t, p.second, options)
}

// shapes returns the parts of MultiLocks a+b+c: one that acquires a batch, and one that acquires
// its parts one by one, on two servers.
func shapes(p *pair) map[string][]*rlock.Lock {
	return map[string][]*rlock.Lock{
		"batch":      {p.client.NewLock("a"), p.client.NewLock("b"), p.client.NewLock("c")},
		"one by one": {p.client.NewLock("a"), p.client.NewFencedLock("b"), p.another.NewLock("c")},
	}
}

func of(locks []*rlock.Lock) *multilock.Lock {
	all := make([]rlock.Locker, len(locks))
	for i, l := range locks {
		all[i] = l
	}
	return multilock.New(all...)
}

// proxied returns a lock of three plain ones, whose client is connected to the server through a
// proxy, by one connection for commands. The server knows the scripts. In clean-up the proxy lets
// everything pass before the client is closed. The client is anonymous: while the reply to what
// says who it is were held, rueidis would send nothing else.
func proxied(
	t testing.TB, options rlock.Options,
) (*redistest.Server, *multilock.Lock, *faultproxy.Proxy) {
	t.Helper()
	s := redistest.Start(t)
	p := faultproxy.Start(t, s.Addr())
	options.Anonymous = true
	c := newClient(t, s, options, redistest.OneConnection,
		func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} })
	t.Cleanup(p.Pass)
	lock := multilock.New(c.NewLock("a"), c.NewLock("b"), c.NewLock("c"))
	learn(t, lock, c.NewLock("a"))
	return s, lock, p
}

// script returns what identifies a call of a script on the network, once the server knows it.
func script(t testing.TB, file string) string {
	t.Helper()
	source, known := locktest.Scripts()[file]
	require.True(t, known, file)
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

// learn makes the server load the scripts of these locks.
func learn(t testing.TB, lock *multilock.Lock, parts ...rlock.Locker) {
	t.Helper()
	for _, l := range append(parts, lock) {
		hold := take(t, l, longLease)
		unlock(t, takeWith(hold.Context(), t, l, longLease))
		require.NoError(t, hold.Extend(t.Context(), longLease))
		unlock(t, hold)
	}
}
