package redlock_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/suite"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Short names for what locktest shares with the tests of all locks.
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
)

const (
	// longLease outlasts any test: a lock that becomes free was released.
	longLease = rlock.Lease(10 * time.Minute)
	// name is the name of the tests' lock, unless it matters.
	name = "order"
)

// atOnce counts nodes from their first second, and gives them more time to reply than a busy
// machine needs. It is for tests of anything else.
var atOnce = redlock.Options{FsyncAlways: true, NodeTimeout: 3 * time.Second}

// hasty is atOnce for tests that wait for nodes that do not reply.
var hasty = redlock.Options{FsyncAlways: true, NodeTimeout: 100 * time.Millisecond}

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

// A world is n masters inside the process, which execute the real scripts in virtual time, and a
// client of each, called a, b, c and so on.
type world struct {
	*suite.Env
	clients []*rlock.Client
	lock    *redlock.Lock
}

// inWorld runs a test with n masters.
func inWorld(t *testing.T, n int, options rlock.Options, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{Env: &suite.Env{World: suite.Virtual, Servers: suite.Virtual.Start(t, n)}}
		w.clients = w.party(t, options)
		w.lock = redlock.NewOn(name, atOnce, w.clients...)
		test(t, w)
	})
}

// party returns more clients, like those of another process.
func (w *world) party(t *testing.T, options rlock.Options) []*rlock.Client {
	t.Helper()
	i := 0
	return w.Party(t, func(o *rlock.Options) {
		options.Logger, options.Server, options.Anonymous = o.Logger, called(i), true
		*o, i = options, i+1
	}).Clients
}

// takeOnAll acquires the lock on every server.
func (w *world) takeOnAll(t *testing.T, lease rlock.Lease) *rlock.Hold {
	t.Helper()
	hold := take(t, w.lock, lease)
	synctest.Wait()
	require.Equal(t, len(w.Servers), w.lock.Parts(hold))
	return hold
}

// held returns on how many servers something of the lock is left, when nothing is under way.
func (w *world) held(t *testing.T) (n int) {
	t.Helper()
	synctest.Wait()
	for _, s := range w.Servers {
		n += min(1, len(s.Keys(t)))
	}
	return n
}

// delay makes a server reply that much later.
func (w *world) delay(server int, late time.Duration) {
	w.Servers[server].(interface{ SetDelay(d time.Duration) }).SetDelay(late)
}

// give gives the lock on servers to another program, such as a Java one. A request that is under
// way must not come between the commands: both would have the lock then.
func give(t *testing.T, servers ...suite.Server) {
	t.Helper()
	synctest.Wait()
	for _, s := range servers {
		s.Do(t, "DEL", name)
		s.Do(t, "HSET", name, "somebody", "1")
		s.Do(t, "PEXPIRE", name, "3600000")
	}
}

// giveBack ends give as Redisson does.
func giveBack(t *testing.T, servers ...suite.Server) {
	t.Helper()
	for _, s := range servers {
		s.Do(t, "DEL", name)
		s.Do(t, "PUBLISH", "redisson_lock__channel:{"+name+"}", "0")
	}
}

// quorumError returns the *QuorumError in err, whose nodes have one error each, and are named in
// its text.
func quorumError(t testing.TB, err error) *redlock.QuorumError {
	t.Helper()
	var e *redlock.QuorumError
	require.ErrorAs(t, err, &e)
	require.Equal(t, name, e.Lock)
	require.ErrorContains(t, err, "holdfast: lock \"order\": ")
	for _, n := range e.Nodes {
		require.Error(t, n.Err)
		require.ErrorContains(t, err, n.Server)
	}
	return e
}

// requireLost requires that a hold has ended with ErrLost, that the error has each of the words,
// and that a release reports it as well, once.
func requireLost(t testing.TB, hold *rlock.Hold, words ...string) {
	t.Helper()
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.False(t, hold.Valid())
	for _, word := range words {
		require.ErrorContains(t, hold.Err(), word)
	}
	require.ErrorIs(t, hold.Unlock(), rlock.ErrLost)
	require.ErrorIs(t, hold.Unlock(), rlock.ErrNotHeld)
}
