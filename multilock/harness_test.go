package multilock_test

import (
	"crypto/sha1"
	"encoding/hex"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/faultproxy"
	"holdfast/internal/fragments"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/multilock"
	"holdfast/rlock"
)

// The names below are short for what locktest has for the tests of all locks.

const patience = locktest.Patience

type process = locktest.Process

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
)

// newClient returns a client of the server with connections of its own, both closed in clean-up. It logs nothing unless
// options say so.
func newClient(t testing.TB, s *redistest.Server, options rlock.Options, mutators ...func(*rueidis.ClientOption)) *rlock.Client {
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

// forceUnlock frees a lock that somebody holds.
func forceUnlock(t testing.TB, l *rlock.Lock) {
	t.Helper()
	held, err := l.ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, held, l.Name())
}

// awaitListener waits until somebody listens for releases of a plain or fenced lock whose name has no braces: from then on it
// waits for that lock.
func awaitListener(t testing.TB, s *redistest.Server, lock string) {
	t.Helper()
	eventually(t, func() bool {
		return s.DoStrings(t, "PUBSUB", "NUMSUB", "redisson_lock__channel:{"+lock+"}")[1] != "0"
	}, "somebody waits for "+lock)
}

// awaitWaiting waits until part a is held, and somebody listens for releases of b: who wants both waits for b from then on.
func awaitWaiting(t testing.TB, s *redistest.Server) {
	t.Helper()
	eventually(t, func() bool { return exists(t, s, "a") }, "a is taken")
	awaitListener(t, s, "b")
}

// exists tells whether the server has the key.
func exists(t testing.TB, s *redistest.Server, key string) bool {
	t.Helper()
	return s.DoInt(t, "EXISTS", key) == 1
}

// levels are the hold counts of a plain, fair or fenced lock, one for each owner.
func levels(t testing.TB, s *redistest.Server, lock string) []string {
	t.Helper()
	return s.DoStrings(t, "HVALS", lock)
}

// lasts is what is left of the lease of a lock.
func lasts(t testing.TB, s *redistest.Server, lock string) time.Duration {
	t.Helper()
	return time.Duration(s.DoInt(t, "PTTL", lock)) * time.Millisecond
}

// whatLasts is what the keys begin with that stay when a lock is free, by design: the counter of a fenced lock for ever, and
// this library's own ones for some seconds.
var whatLasts = []string{"redisson_lock_token:", "holdfast_rwlock_"}

// left are the keys of a server that hold or queue for some lock.
func left(t testing.TB, s *redistest.Server) []string {
	t.Helper()
	return slices.DeleteFunc(s.DoStrings(t, "KEYS", "*"), func(key string) bool {
		return slices.ContainsFunc(whatLasts, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
}

// requireFree requires that nothing is left of any hold on the servers, nor of a place in a queue.
func requireFree(t testing.TB, servers ...*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		require.Empty(t, left(t, s))
	}
}

// awaitFree waits until requireFree would be content.
func awaitFree(t testing.TB, servers ...*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		eventually(t, func() bool { return len(left(t, s)) == 0 }, "nothing is held on "+s.Addr())
	}
}

// scriptCalls is how many scripts the server was asked to run since the monitor was last read.
func scriptCalls(t testing.TB, m *redistest.Monitor) int {
	t.Helper()
	n := 0
	for _, command := range m.Commands(t) {
		require.Equal(t, "evalsha", command[0], strconv.Quote(strings.Join(command, " ")))
		n++
	}
	return n
}

// pair is two servers and a client of each, whose names say in which order their locks are taken.
type pair struct {
	first, second   *redistest.Server
	client, another *rlock.Client // of the first and of the second
}

// startPair starts two servers. What else the options say is for both clients.
func startPair(t testing.TB, options rlock.Options) *pair {
	t.Helper()
	p := &pair{first: redistest.Start(t), second: redistest.Start(t)}
	p.client, p.another = p.clients(t, options)
	return p
}

// clients returns other clients of both servers, as another process would have them.
func (p *pair) clients(t testing.TB, options rlock.Options) (client, another *rlock.Client) {
	t.Helper()
	options.Server = "first"
	client = newClient(t, p.first, options)
	options.Server = "second"
	return client, newClient(t, p.second, options)
}

// shapes are MultiLocks of a, b and c: of one company, and of parts that are taken one by one, on two servers.
func shapes(p *pair) map[string][]*rlock.Lock {
	return map[string][]*rlock.Lock{
		"together":   {p.client.NewLock("a"), p.client.NewLock("b"), p.client.NewLock("c")},
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

// proxied is three plain locks of a client whose connections to the server, of which one is for commands, pass through a
// proxy. The server knows the scripts. In clean-up the proxy lets everything pass before the client is closed.
func proxied(t testing.TB, options rlock.Options) (*redistest.Server, *multilock.Lock, *faultproxy.Proxy) {
	t.Helper()
	s := redistest.Start(t)
	p := faultproxy.Start(t, s.Addr())
	c := newClient(t, s, options, redistest.OneConnection, func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} })
	t.Cleanup(p.Pass)
	lock := multilock.New(c.NewLock("a"), c.NewLock("b"), c.NewLock("c"))
	learn(t, lock, c.NewLock("a"))
	return s, lock, p
}

// script is how a call of one of the scripts can be recognised on the wire, once the server knows it.
func script(t testing.TB, file string) string {
	t.Helper()
	source, known := fragments.Read(os.DirFS("../lua"))[file]
	require.True(t, known, file)
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

// learn has the server know the scripts for these locks.
func learn(t testing.TB, lock *multilock.Lock, parts ...rlock.Locker) {
	t.Helper()
	for _, l := range append(parts, lock) {
		hold := take(t, l, longLease)
		unlock(t, takeWith(hold.Context(), t, l, longLease))
		require.NoError(t, hold.Extend(t.Context(), longLease))
		unlock(t, hold)
	}
}

// watchLease requires that a lock is held by one owner without a gap, and never for longer than lease, until stop is called,
// which returns how long the shortest rest of its lease was.
func watchLease(t *testing.T, s *redistest.Server, lock string, lease time.Duration) (stop func() (shortest time.Duration)) {
	t.Helper()
	var watching sync.WaitGroup
	end := make(chan struct{})
	shortest, longest := lease, time.Duration(0)
	var failure error
	owners := make(map[string]bool)
	watching.Go(func() {
		for again := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-end:
				again.Stop()
				return
			case <-again.C:
			}
			reply, err := s.Call("PTTL", lock)
			if err != nil {
				failure = err
				return
			}
			milliseconds := reply.(int64)
			left := time.Duration(milliseconds) * time.Millisecond
			shortest, longest = min(shortest, left), max(longest, left)
			if reply, err = s.Call("HKEYS", lock); err != nil {
				failure = err
				return
			}
			for _, owner := range reply.([]any) {
				owners[owner.(string)] = true
			}
		}
	})
	return sync.OnceValue(func() time.Duration {
		close(end)
		watching.Wait()
		require.NoError(t, failure)
		require.Len(t, owners, 1)
		require.LessOrEqual(t, longest, lease, "a lease is longer than asked for")
		return shortest
	})
}
