package multilock_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/suite"
	"holdfast/multilock"
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

// longLease outlasts any test: a lock that becomes free was released.
const longLease = rlock.Lease(10 * time.Minute)

// newClientOn returns a client on the given connections, closed in clean-up. It is anonymous: tests
// count commands, and what says who a client is may come at any time.
func newClientOn(t testing.TB, redis rueidis.Client, options rlock.Options) *rlock.Client {
	t.Helper()
	options.Logger, options.Anonymous = slog.New(slog.DiscardHandler), true
	c, err := rlock.New(redis, options)
	require.NoError(t, err)
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// pair is two servers inside the process with a client each, in virtual time. Locks are acquired in
// the order of the clients' names.
type pair struct {
	first, second   suite.Server
	client, another *rlock.Client // of the first and of the second
}

// inPair runs a test with two servers. The options go to both clients.
func inPair(t *testing.T, options rlock.Options, test func(*testing.T, *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		servers := suite.Virtual.Start(t, 2)
		p := &pair{first: servers[0], second: servers[1]}
		p.client, p.another = p.clients(t, options)
		test(t, p)
	})
}

// clients returns more clients of both servers, like those of another process.
func (p *pair) clients(t testing.TB, options rlock.Options) (client, another *rlock.Client) {
	t.Helper()
	options.Server = "first"
	client = newClientOn(t, p.first.Client(t), options)
	options.Server = "second"
	return client, newClientOn(t, p.second.Client(t), options)
}

// inShapes is inPair for the parts of MultiLocks a+b+c: one that acquires a batch, and one that
// acquires its parts one by one, on two servers.
func inShapes(t *testing.T, test func(*testing.T, *pair, []*rlock.Lock)) {
	t.Helper()
	t.Run("batch", func(t *testing.T) {
		inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
			c := p.client
			test(t, p, []*rlock.Lock{c.NewLock("a"), c.NewLock("b"), c.NewLock("c")})
		})
	})
	t.Run("one by one", func(t *testing.T) {
		inPair(t, rlock.Options{}, func(t *testing.T, p *pair) {
			test(t, p, []*rlock.Lock{
				p.client.NewLock("a"), p.client.NewFencedLock("b"), p.another.NewLock("c"),
			})
		})
	})
}

func of(locks []*rlock.Lock) *multilock.Lock {
	all := make([]rlock.Locker, len(locks))
	for i, l := range locks {
		all[i] = l
	}
	return multilock.New(all...)
}

// levels returns the hold counts of a plain, fair or fenced lock, one for each owner.
func levels(t testing.TB, s suite.Server, lock string) string {
	t.Helper()
	var all []string
	for _, count := range s.Do(t, "HVALS", lock).([]any) {
		all = append(all, count.(string))
	}
	return strings.Join(all, " ")
}

// lasts returns the rest of the lease of a on the first server.
func (p *pair) lasts(t testing.TB) time.Duration {
	t.Helper()
	milliseconds := p.first.Do(t, "PTTL", "a").(int64)
	return time.Duration(milliseconds) * time.Millisecond
}

// left returns the keys of servers by which a lock is held or queued for. A fenced lock's counter
// stays for ever, the precedence of writers for some seconds.
func left[S interface{ Keys(tb testing.TB) []string }](t testing.TB, servers ...S) []string {
	t.Helper()
	keys := []string{}
	for _, s := range servers {
		keys = append(keys, s.Keys(t)...)
	}
	slices.Sort(keys)
	return slices.DeleteFunc(keys, func(key string) bool {
		return strings.HasPrefix(key, "redisson_lock_token:") ||
			strings.HasPrefix(key, "holdfast_rwlock_")
	})
}

// requireFree requires that nothing on the servers holds a lock or queues for one.
func (p *pair) requireFree(t testing.TB) {
	t.Helper()
	require.Empty(t, left(t, p.first, p.second))
}

// asked returns how many scripts the servers were asked to run since the last call.
func (p *pair) asked(t testing.TB) (first, second int) {
	t.Helper()
	first, _ = suite.Asked(t, p.first)
	second, _ = suite.Asked(t, p.second)
	return first, second
}

// requireLost requires an error of a loss that names the part once, and says why it was lost.
func requireLost(t testing.TB, err error, part, reason string) {
	t.Helper()
	require.ErrorIs(t, err, rlock.ErrLost)
	require.NotErrorIs(t, err, rlock.ErrReleased)
	require.ErrorContains(t, err, `lock "`+part+`": lost: `+reason)
	require.Equal(t, 1, strings.Count(err.Error(), "holdfast:"), err)
}

// learn makes the servers load the scripts of these locks.
func learn(t testing.TB, lock *multilock.Lock, parts ...rlock.Locker) {
	t.Helper()
	for _, l := range append(parts, lock) {
		hold := take(t, l, longLease)
		unlock(t, takeWith(hold.Context(), t, l, longLease))
		require.NoError(t, hold.Extend(t.Context(), longLease))
		unlock(t, hold)
	}
}
