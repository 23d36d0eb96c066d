package suite

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/inprocess"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// A World is where locks live: servers, and the clock by which their leases run.
type World struct {
	Name string
	// Virtual is set if each test has a testing/synctest bubble, in which time is exact and costs
	// nothing.
	Virtual bool
	// Masters is how many independent masters the world has.
	Masters int
	// Start returns that many masters without any keys. If it is nil, Run takes the servers of tests
	// that have ended, and starts more with fresh.
	Start func(t *testing.T, masters int) []Server

	// fresh starts that many masters, which end with all tests.
	fresh func(all *testing.T, masters int) []reusable
}

// A Server is what promises need of a master.
type Server interface {
	Client(tb testing.TB, mutators ...func(*rueidis.ClientOption)) rueidis.Client
	// Keys returns the names of all keys but those by which clients say who they are.
	Keys(tb testing.TB) []string
	// Do executes a command beside the clients of the test.
	Do(tb testing.TB, args ...string) any
	// Pause makes the server hang until Resume: connections stay open, and nothing is executed.
	Pause(tb testing.TB)
	Resume(tb testing.TB)
	// Kill ends the server, which forgets all keys. Restart kills it if it runs, and starts it again.
	Kill(tb testing.TB)
	Restart(tb testing.TB)
	// Reject makes the server reject scripts: for now, as one that lacks replicas (NOREPLICAS); or
	// for good, as one without the permission (NOPERM). With "" it ends that.
	Reject(tb testing.TB, code string)
	// Disconnect breaks all connections, and none works until Connect: a new one is refused in virtual
	// time, and hangs elsewhere. The server forgets nothing.
	Disconnect(tb testing.TB)
	Connect(tb testing.TB)
}

// Virtual is the world of go test without a Redis: a server inside the test process, with the real
// scripts, in virtual time.
var Virtual = World{Name: "virtual", Virtual: true, Masters: 3, Start: startInProcess}

// Redis is the world of one Redis, or of several that know nothing of each other.
var Redis = World{Name: "redis", Masters: 3, fresh: func(t *testing.T, n int) (all []reusable) {
	for _, s := range redistest.StartAll(t, n) {
		all = append(all, process{s})
	}
	return all
}}

// A reusable server serves one test after the other.
type reusable interface {
	Server
	// reset makes the server like one that has just been started, after whatever a test did to it.
	reset(tb testing.TB)
}

// process is a [Server] in a process of its own.
type process struct{ *redistest.Server }

func (p process) Disconnect(tb testing.TB) {
	tb.Helper()
	p.Do(tb, "CLIENT", "KILL", "TYPE", "pubsub")
	p.Do(tb, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	p.Pause(tb)
}

func (p process) Connect(tb testing.TB) { p.Resume(tb) }

func (p process) reset(tb testing.TB) {
	tb.Helper()
	if !p.Running() {
		p.Restart(tb)
	}
	p.Resume(tb)
	p.Reject(tb, "")
	p.Do(tb, "FLUSHALL")
	p.Do(tb, "SCRIPT", "FLUSH")
	p.Do(tb, "CONFIG", "RESETSTAT")
}

// reusing returns a Start that takes the servers of tests that have ended. A test that runs has its
// servers to itself. They end with all tests. Those of a test that failed are not used again.
func (w World) reusing(all *testing.T) func(t *testing.T, masters int) []Server {
	var mu sync.Mutex
	var free []reusable
	return func(t *testing.T, masters int) (servers []Server) {
		t.Helper()
		mu.Lock()
		reused := min(masters, len(free))
		taken := slices.Clone(free[:reused])
		free = free[reused:]
		mu.Unlock()
		if reused < masters {
			taken = append(taken, w.fresh(all, masters-reused)...)
		}
		t.Cleanup(func() {
			if t.Failed() {
				return
			}
			for _, s := range taken {
				s.reset(t)
			}
			mu.Lock()
			defer mu.Unlock()
			free = append(free, taken...)
		})
		for _, s := range taken {
			servers = append(servers, s)
		}
		return servers
	}
}

// run runs the proof of a promise with one kind of lock.
func (w World) run(t *testing.T, k Kind, test func(*testing.T, *Env, Kind)) {
	t.Helper()
	if k.Masters > w.Masters {
		return // there is no RedLock on one system
	}
	t.Run(k.Name, func(t *testing.T) {
		if !w.Virtual {
			test(t, &Env{World: w, Servers: w.Start(t, k.Masters)}, k)
			return
		}
		synctest.Test(t, func(t *testing.T) {
			test(t, &Env{World: w, Servers: w.Start(t, k.Masters)}, k)
		})
	})
}

// Env is what the proof of a promise has to itself.
type Env struct {
	World
	Servers []Server
}

// A Party is one client of each master, as in one process of an application.
type Party struct {
	Client  *rlock.Client   // of the first master
	Clients []*rlock.Client // of all masters
	// NodeTimeout is that of the party's RedLocks; 0 means that they learn it.
	NodeTimeout time.Duration
}

// Party returns new clients, which are closed when the test ends.
func (e *Env) Party(t *testing.T, options ...func(*rlock.Options)) *Party {
	t.Helper()
	return e.party(t, options)
}

// party is Party with options of the connections.
func (e *Env) party(
	t *testing.T, options []func(*rlock.Options), mutators ...func(*rueidis.ClientOption),
) *Party {
	t.Helper()
	p := new(Party)
	if !e.Virtual {
		p.NodeTimeout = 2 * time.Second // what they learn is too short when the machine is busy
	}
	for _, server := range e.Servers {
		o := rlock.Options{Logger: slog.New(slog.DiscardHandler)}
		for _, change := range options {
			change(&o)
		}
		client, err := rlock.New(server.Client(t, mutators...), o)
		require.NoError(t, err)
		t.Cleanup(func() { locktest.CloseClient(t, client) })
		p.Clients = append(p.Clients, client)
	}
	p.Client = p.Clients[0]
	return p
}

// RequireNothingLeft requires that soon no server has anything left of any lock, except what
// outlasts a lock by design: the counter of a fenced lock, and the precedence of writers. A RedLock
// is released when a quorum has confirmed it, and the other masters follow.
func (e *Env) RequireNothingLeft(t *testing.T) {
	t.Helper()
	locktest.Eventually(t, func() bool { return len(e.keys(t)) == 0 }, "a key is left")
}

// inProcess is a [Server] inside the test process.
type inProcess struct{ *inprocess.Server }

func startInProcess(t *testing.T, masters int) []Server {
	t.Helper()
	var all []Server
	for range masters {
		server, err := inprocess.New()
		require.NoError(t, err)
		t.Cleanup(server.Close)
		all = append(all, inProcess{server})
	}
	return all
}

func (s inProcess) Client(
	tb testing.TB, mutators ...func(*rueidis.ClientOption),
) rueidis.Client {
	tb.Helper()
	option := s.ClientOption()
	for _, change := range mutators {
		change(&option)
	}
	client, err := rueidis.NewClient(option)
	require.NoError(tb, err)
	tb.Cleanup(client.Close)
	return client
}

func (s inProcess) Keys(testing.TB) (keys []string) {
	s.CatchUp()
	for _, key := range s.Redis().Keys() {
		if !redistest.OfClient(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s inProcess) Pause(testing.TB)  { s.Server.Pause() }
func (s inProcess) Resume(testing.TB) { s.Server.Resume() }

func (s inProcess) Kill(testing.TB) {
	s.SetDown(true)
	s.Redis().FlushAll()
}

func (s inProcess) Restart(tb testing.TB) {
	s.Kill(tb)
	s.SetDown(false)
}

func (s inProcess) Disconnect(testing.TB) { s.SetDown(true) }
func (s inProcess) Connect(testing.TB)    { s.SetDown(false) }

func (s inProcess) Do(tb testing.TB, args ...string) any {
	tb.Helper()
	client := s.Client(tb)
	reply, err := client.Do(tb.Context(), client.B().Arbitrary(args...).Build()).ToAny()
	if !rueidis.IsRedisNil(err) {
		require.NoError(tb, err)
	}
	return reply
}

// Reject makes scripts end with an error.
func (s inProcess) Reject(_ testing.TB, code string) {
	if code != "" {
		code += " rejected by the test"
	}
	s.Server.Reject(code)
}

// Reject changes what the server accepts.
func (p process) Reject(tb testing.TB, code string) {
	tb.Helper()
	replicas, scripting := "0", "+@scripting"
	switch code {
	case temporary:
		replicas = "1"
	case permanent:
		scripting = "-@scripting"
	}
	p.Do(tb, "CONFIG", "SET", "min-replicas-to-write", replicas)
	p.Do(tb, "ACL", "SETUSER", "default", scripting)
	if code != "" {
		tb.Cleanup(func() { p.Reject(tb, "") })
	}
}

// What servers reject scripts with.
const (
	temporary = "NOREPLICAS"
	permanent = "NOPERM"
)

// Reject makes all servers reject scripts with a code, or, with "", ends that.
func (e *Env) Reject(t *testing.T, code string) {
	t.Helper()
	for _, server := range e.Servers {
		server.Reject(t, code)
	}
}

// Held reports whether every server has something of a lock that ends with it.
func (e *Env) Held(t *testing.T) bool {
	t.Helper()
	return !slices.ContainsFunc(e.Servers, func(s Server) bool { return len(ofLocks(t, s)) == 0 })
}

// warm acquires and releases a lock, so that the servers know the scripts.
func warm(t *testing.T, p *Party, k Kind) {
	t.Helper()
	ctx := rlock.WithOwner(t.Context())
	for _, name := range []string{"warm", "lock"} { // on a cluster, the server of the latter
		lock := k.New(p, name)
		outer := locktest.AcquireWith(ctx, t, lock, rlock.Lease(time.Minute))
		require.NoError(t, outer.Extend(t.Context(), rlock.Lease(time.Minute)))
		if !k.Flat {
			locktest.Unlock(t, locktest.AcquireWith(ctx, t, lock, rlock.Lease(time.Minute)))
		}
		locktest.Unlock(t, outer)
	}
}

// watchdogLease sets the lease of the watchdog.
func watchdogLease(lease time.Duration) func(*rlock.Options) {
	return func(o *rlock.Options) { o.WatchdogLease = lease }
}

// commandTimeout sets how long a command is waited for.
func commandTimeout(limit time.Duration) func(*rlock.Options) {
	return func(o *rlock.Options) { o.CommandTimeout = limit }
}

// requireUnknown requires the error of an acquisition that may have been executed.
func requireUnknown(t *testing.T, k Kind, err error) {
	t.Helper()
	require.NotErrorIs(t, err, rlock.ErrNotAcquired)
	if k.Masters > 1 {
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		return
	}
	require.ErrorIs(t, err, rlock.ErrOutcomeUnknown)
}

// requireLostBy requires that a hold has been lost for a reason.
func requireLostBy(t *testing.T, hold *rlock.Hold, reason error) {
	t.Helper()
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
	require.ErrorIs(t, hold.Err(), reason)
	locktest.Receive(t, hold.Context().Done(), "its context goes on") // it ends just after Done
	require.ErrorIs(t, context.Cause(hold.Context()), rlock.ErrLost)
	require.False(t, hold.Valid())
}

// requireContended requires that nobody else gets a lock now.
func requireContended(t *testing.T, k Kind, p *Party, name string) {
	t.Helper()
	_, err := k.Contender(p, name).TryLock(t.Context(), rlock.NoWait, rlock.Lease(time.Minute))
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
}
