package rlock_test

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/faultproxy"
	"holdfast/internal/faults"
	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/internal/suite"
	"holdfast/rlock"
)

// Short names for what locktest shares with the tests of all locks.

const longWait = locktest.Timeout

type outcome = locktest.Outcome

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

// receive calls locktest.Receive.
func receive[T any](t testing.TB, from <-chan T, otherwise string) T {
	t.Helper()
	return locktest.Receive(t, from, otherwise)
}

// anonymous are the options of a client whose commands a test counts: none comes by itself, to say
// who the client is. A [redistest.Monitor] leaves out those.
var anonymous = rlock.Options{Anonymous: true}

// newClient returns a client with connections of its own to the server, both closed in clean-up. It
// logs nothing unless options say otherwise.
func newClient(
	t testing.TB, s *redistest.Server, options rlock.Options,
	mutators ...func(*rueidis.ClientOption),
) *rlock.Client {
	t.Helper()
	return newClientOn(t, s.Client(t, mutators...), options)
}

// newClientOn returns a client on the given connections, closed in clean-up. Close gets time enough
// to be called a failure if it hangs.
func newClientOn(t testing.TB, redis rueidis.Client, options rlock.Options) *rlock.Client {
	t.Helper()
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	withheld := false // some commands, on purpose: who the client is must not be among them
	switch redis.(type) {
	case *gated, *stepwise:
		withheld, options.Anonymous = true, true
	}
	c, err := rlock.New(redis, options)
	require.NoError(t, err)
	t.Cleanup(func() { closeClient(t, c) })
	if withheld { // no caller can leave, even if its context ends
		rlock.Detach(c)
	}
	return c
}

// channelOf returns the channel of a lock whose name has no braces.
func channelOf(lock string) string { return "redisson_lock__channel:{" + lock + "}" }

// waitForListeners waits until exactly n connections listen on the channel of a lock.
func waitForListeners(t testing.TB, s *redistest.Server, lock string, n int) {
	t.Helper()
	eventually(t, func() bool { return listenersOf(s, "", channelOf(lock)) == n },
		strconv.Itoa(n)+" listeners on "+channelOf(lock))
}

// calls returns how often the server has executed a command, also in scripts. Unlike CommandStats
// it may be called in a condition.
func calls(s *redistest.Server, command string) int {
	reply, _ := s.Call("INFO", "commandstats")
	info, _ := reply.(string)
	_, after, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	count, _, _ := strings.Cut(after, ",")
	n, _ := strconv.Atoi(count) // 0 if it was never called
	return n
}

// verbs returns the names of commands, without those of redistest itself.
func verbs(commands [][]string) []string {
	names := make([]string, len(commands))
	for i, command := range commands {
		names[i] = command[0]
	}
	return names
}

// listener is a plain subscriber of one channel.
type listener struct{ lines *bufio.Reader }

// listen subscribes, and returns when the server has confirmed it.
func listen(t *testing.T, s *redistest.Server, channel string) *listener {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(2*longWait)))
	_, err = fmt.Fprintf(conn, "*2\r\n$9\r\nSUBSCRIBE\r\n$%d\r\n%s\r\n", len(channel), channel)
	require.NoError(t, err)
	l := &listener{bufio.NewReader(conn)}
	require.Equal(t, []string{"subscribe", channel}, l.next(t)[:2])
	return l
}

// next returns the next message: "message", channel, payload.
func (l *listener) next(t *testing.T) []string {
	t.Helper()
	var words []string
	for len(words) < 3 {
		line, err := l.lines.ReadString('\n')
		require.NoError(t, err)
		line = strings.TrimSpace(line)
		if !strings.ContainsAny(line[:1], "*$") {
			words = append(words, line)
		}
	}
	return words
}

// kind is what a test must know of a kind of lock, so that one test serves all kinds.
type kind struct {
	name string
	// lock makes the lock.
	lock func(c *rlock.Client, name string) *rlock.Lock
	// contender makes the lock that keeps another owner out of this one: usually the same, for the
	// read lock the write lock.
	contender func(c *rlock.Client, name string) *rlock.Lock
	// shared is set when any number of owners may hold it at once.
	shared bool
	// grants is set when a release may grant it to any waiter of this library.
	grants bool
	// mode is the mode in the hash of the lock while it is held, or "", and contenderMode while the
	// contender is held.
	mode, contenderMode string
	// channel is the prefix of the lock's channels, before its name in braces.
	channel string
	// The files of the scripts.
	acquire, release, forceUnlock, renew string
}

// kinds has the kinds of locks that nest. Each of them can do what the reentrant lock can.
var kinds = []kind{
	{
		name: "reentrant", lock: (*rlock.Client).NewLock, contender: (*rlock.Client).NewLock,
		channel: "redisson_lock__channel", grants: true, acquire: "acquire.lua",
		release: "release.lua", forceUnlock: "force_unlock.lua", renew: "renew.lua",
	},
	{
		name: "fair", lock: (*rlock.Client).NewFairLock, contender: (*rlock.Client).NewFairLock,
		channel: "redisson_lock__channel", acquire: "fair_acquire.lua",
		release: "fair_release.lua", forceUnlock: "fair_force_unlock.lua", renew: "renew.lua",
	},
	{
		name: "read", lock: newReadLock, contender: newWriteLock, channel: "redisson_rwlock",
		shared: true, mode: "read", contenderMode: "write", acquire: "read_acquire.lua",
		release: "read_release.lua", forceUnlock: "readwrite_force_unlock.lua", renew: "read_renew.lua",
	},
	{
		name: "write", lock: newWriteLock, contender: newWriteLock, channel: "redisson_rwlock",
		mode: "write", contenderMode: "write", acquire: "write_acquire.lua",
		release: "write_release.lua", forceUnlock: "readwrite_force_unlock.lua", renew: "renew.lua",
	},
	{
		name: "fenced", lock: (*rlock.Client).NewFencedLock, contender: (*rlock.Client).NewFencedLock,
		channel: "redisson_lock__channel", grants: true, acquire: "fenced_acquire.lua",
		release: "release.lua", forceUnlock: "force_unlock.lua", renew: "renew.lua",
	},
}

// nonReentrant has the kinds of locks that do not nest. They have the scripts of those that do.
func nonReentrant() []kind {
	plain, fair := kindNamed("reentrant"), kindNamed("fair")
	plain.name, fair.name = "nonreentrant", "nonreentrant-fair"
	plain.lock = (*rlock.Client).NewNonReentrantLock
	fair.lock = (*rlock.Client).NewNonReentrantFairLock
	plain.contender, fair.contender = plain.lock, fair.lock
	return []kind{plain, fair}
}

func newReadLock(c *rlock.Client, name string) *rlock.Lock {
	return c.NewReadWriteLock(name).Read()
}

func newWriteLock(c *rlock.Client, name string) *rlock.Lock {
	return c.NewReadWriteLock(name).Write()
}

// onEveryKind runs a test for each kind of lock, one after another unless the test calls
// t.Parallel. Tests that share a server name their locks after the kind, so that they do not meet.
func onEveryKind(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	inTurn(t, kinds, test)
}

// inTurn is onEveryKind for some kinds.
func inTurn(t *testing.T, kinds []kind, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// contests returns the kinds for tests in which a waiter waits for the contender: writers wait for
// writers, and for readers as well.
func contests() []kind {
	behind := kindNamed("write")
	behind.name = "write behind readers"
	behind.contender, behind.contenderMode = newReadLock, "read"
	return append(slices.Clip(kinds), behind)
}

// onEveryContest is onEveryKind for each of contests.
func onEveryContest(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	inTurn(t, contests(), test)
}

// kindNamed returns the kind of that name.
func kindNamed(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// hash returns the hash of the lock when an owner holds that many levels.
func (k kind) hash(owner string, levels int) map[string]string {
	count := strconv.Itoa(levels)
	switch k.mode {
	case "read":
		return map[string]string{"mode": "read", owner: count}
	case "write":
		return map[string]string{"mode": "write", owner + ":write": count}
	default:
		return map[string]string{owner: count}
	}
}

// waitForListeners waits until exactly n listen on the channels of a lock whose name has no braces:
// waiters of a fair lock, connections of others.
func (k kind) waitForListeners(t testing.TB, s *redistest.Server, name string, n int) {
	t.Helper()
	eventually(t, func() bool { return k.listeners(s, name) == n },
		strconv.Itoa(n)+" listeners for "+name)
}

// listeners returns how many listen on the channels of a lock, or -1 if the server does not reply.
// Any goroutine may call it.
func (k kind) listeners(s *redistest.Server, name string) int {
	return listenersOf(s, "", k.channel+":{"+name+"}*")
}

// listenersOf is listeners for channels of a pattern. prefix is SHARD for sharded ones.
func listenersOf(s *redistest.Server, prefix, pattern string) (total int) {
	reply, err := s.Call("PUBSUB", prefix+"CHANNELS", pattern)
	if err != nil {
		return -1
	}
	for _, channel := range reply.([]any) {
		reply, err := s.Call("PUBSUB", prefix+"NUMSUB", channel.(string))
		if err != nil {
			return -1
		}
		total += int(reply.([]any)[1].(int64))
	}
	return total
}

// left returns the keys of a server by which any lock, or a named one, is held or queued for; nil
// and false if the server does not reply. Any goroutine may call it. A fenced lock's counter stays
// for ever by design, this library's own keys for some seconds.
func left(s *redistest.Server, names ...string) (keys []string, ok bool) {
	all, err := s.CallKeys()
	for _, key := range all {
		lasts := strings.HasPrefix(key, "redisson_lock_token:") ||
			strings.HasPrefix(key, "holdfast_rwlock_")
		concerns := len(names) == 0 || slices.ContainsFunc(names, func(name string) bool {
			return key == name || strings.Contains(key, "{"+name+"}")
		})
		if concerns && !lasts {
			keys = append(keys, key)
		}
	}
	return keys, err == nil
}

// requireFree requires that the server has nothing left of a hold of the lock, or of a waiter.
func requireFree(t testing.TB, s *redistest.Server, name string) {
	t.Helper()
	keys, ok := left(s, name)
	require.True(t, ok, "the server does not reply")
	require.Empty(t, keys)
}

// waitUntilFree waits until requireFree would pass for these locks, or for all.
func waitUntilFree(t testing.TB, s *redistest.Server, names ...string) {
	t.Helper()
	eventually(t, func() bool {
		keys, ok := left(s, names...)
		return ok && len(keys) == 0
	}, "the lock is free")
}

// promptly bounds what takes milliseconds, on a busy machine too. What it must not wait for takes
// longer: a waiter's next request, 5 s; a command without reply, 3 s; a lease, more.
const promptly = 2 * time.Second

// longLease outlasts any test: a lock that becomes free was released.
const longLease = rlock.Lease(10 * time.Minute)

// proxied returns a client whose connections to the server pass through a proxy, with one
// connection for commands. In clean-up the proxy lets everything pass before the client is closed.
// The client is anonymous: while the reply to what says who it is were held, rueidis would send
// nothing else.
func proxied(
	t testing.TB, s *redistest.Server, options rlock.Options,
) (*rlock.Client, *faultproxy.Proxy) {
	t.Helper()
	p := faultproxy.Start(t, s.Addr())
	options.Anonymous = true
	c := newClient(t, s, options, through(p), redistest.OneConnection)
	t.Cleanup(p.Pass)
	return c, p
}

func through(p *faultproxy.Proxy) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }
}

// warm makes c connect and the server load the scripts.
func warm(t testing.TB, c *rlock.Client, lock string) {
	t.Helper()
	kindNamed("reentrant").warm(t, c, lock)
}

// warm is warm for a lock of this kind.
func (k kind) warm(t testing.TB, c *rlock.Client, lock string) {
	t.Helper()
	hold := take(t, k.lock(c, lock), longLease)
	require.NoError(t, hold.Extend(t.Context(), longLease))
	unlock(t, takeWith(hold.Context(), t, k.lock(c, lock), longLease))
	unlock(t, hold)
}

// script returns what identifies a call of a script on the network, once the server knows it.
func script(t testing.TB, file string) string {
	t.Helper()
	source, known := locktest.Scripts()[file]
	require.True(t, known, file)
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

// loaded is script, and makes sure that the server knows it.
func loaded(t testing.TB, s *redistest.Server, file string) string {
	t.Helper()
	return s.DoString(t, "SCRIPT", "LOAD", locktest.Scripts()[file])
}

// load is loaded for a server in virtual time.
func load(t testing.TB, s suite.Server, file string) string {
	t.Helper()
	return s.Do(t, "SCRIPT", "LOAD", locktest.Scripts()[file]).(string)
}

// exists reports whether the server has the key. Any goroutine may call it.
func exists(s *redistest.Server, key string) bool {
	reply, err := s.Call("EXISTS", key)
	return err == nil && reply == int64(1)
}

// absent reports whether the server replies, and does not have the key.
func absent(s *redistest.Server, key string) bool {
	reply, err := s.Call("EXISTS", key)
	return err == nil && reply == int64(0)
}

// befall makes a fault of the table happen to a server without proxy, and returns what ends it.
func befall(t testing.TB, s *redistest.Server, what string) (end func()) {
	t.Helper()
	f, v := faults.Named(t, what), &faults.Victim{Server: s}
	f.Begin(t, v)
	return func() { f.End(t, v) }
}

// counts returns the fields of the lock "order": owner and hold count.
func counts(t *testing.T, s *redistest.Server) map[string]string {
	t.Helper()
	return s.DoMap(t, "HGETALL", "order")
}

// onEach runs a test in parallel for each of some kinds.
func onEach(t *testing.T, kinds []kind, test func(t *testing.T, k kind)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			test(t, k)
		})
	}
}

// waitersKey returns the key of the registrations of a lock's waiters.
func waitersKey(lock string) string {
	if strings.Contains(lock, "{") {
		return "holdfast_lock_waiters::" + lock
	}
	return "holdfast_lock_waiters:{" + lock + "}"
}

// registrations returns how many waiters are registered, or -1 if the server does not reply.
func registrations(s *redistest.Server, lock string) int {
	if n, err := s.Call("ZCARD", waitersKey(lock)); err == nil {
		return int(n.(int64))
	}
	return -1
}

// registers starts the first waiter of a client for this lock, and returns when it is registered as
// the n-th.
func registers(
	t testing.TB, s *redistest.Server, n int, lock *rlock.Lock, lease rlock.Lease,
) <-chan outcome {
	t.Helper()
	require.Equal(t, n-1, registrations(s, lock.Name()))
	waiter := lockInBackground(t.Context(), lock, lease)
	eventually(t, func() bool { return registrations(s, lock.Name()) == n },
		"registration "+strconv.Itoa(n)+" of "+lock.Name())
	return waiter
}

// gated is a rueidis client that holds commands with a given argument back before they are sent, or
// their replies.
type gated struct {
	rueidis.Client
	argument string
	unsent   bool
	kept     chan struct{} // receives a value for each command held back
	opened   chan struct{}
	passes   chan struct{}
	once     sync.Once
}

// keepReplies returns a client that executes commands with that argument, and holds their replies
// back. c has one connection ([redistest.OneConnection]): a caller that would have to dial another
// one sends nothing, and then a worker sends the command again.
func keepReplies(c rueidis.Client, argument string) *gated {
	return &gated{Client: c, argument: argument, kept: make(chan struct{}, 1000),
		opened: make(chan struct{}), passes: make(chan struct{})}
}

// keepCommands returns a client that holds commands with that argument back, as a connection that
// hangs would.
func keepCommands(c rueidis.Client, argument string) *gated {
	g := keepReplies(c, argument)
	g.unsent = true
	return g
}

func (g *gated) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	kept := slices.Contains(command.Commands(), g.argument) // before Do, which recycles the command
	if kept && g.unsent {
		g.wait()
	}
	result := g.Client.Do(ctx, command)
	if kept && !g.unsent {
		g.wait()
	}
	return result
}

func (g *gated) wait() {
	g.kept <- struct{}{}
	select {
	case <-g.opened:
	case <-g.passes:
	}
}

// pass lets one that is held back pass.
func (g *gated) pass() { g.passes <- struct{}{} }

// open lets everything pass from now on.
func (g *gated) open() { g.once.Do(func() { close(g.opened) }) }

// stepwise is a rueidis client that holds each command with a given argument until it is told to
// send it.
type stepwise struct {
	rueidis.Client
	argument string
	arrived  chan struct{} // receives a value for each waiting command
	step     chan struct{} // lets one pass; all of them when it is closed
}

func (s *stepwise) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if slices.Contains(command.Commands(), s.argument) {
		s.arrived <- struct{}{}
		<-s.step
	}
	return s.Client.Do(ctx, command)
}

// bubble is a client and a server in a testing/synctest bubble, where time is exact: it passes only
// while all goroutines wait.
type bubble struct {
	server *fakeredis.Server
	client *rlock.Client
	lock   *rlock.Lock
	start  time.Time

	mu      sync.Mutex
	scripts map[string]func(args []string) any // guarded by mu; by file name
	calls   map[string][]time.Duration         // guarded by mu; when each was called, from start
}

// granted has the replies of scripts when nothing is in the way.
var granted = func() map[string]func([]string) any {
	replies := map[string]func([]string) any{
		"identity.lua":       func([]string) any { return []any{} },
		"inspect.lua":        func([]string) any { return []any{-2, []any{}} },
		"fair_inspect.lua":   func([]string) any { return []any{-2, []any{}, []any{}} },
		"fenced_inspect.lua": func([]string) any { return []any{-2, []any{}, "1"} },
		"renew.lua":          func(args []string) any { return renewed(len(args) / 2) },
		"read_renew.lua":     func(args []string) any { return renewed(len(args) / 3) },
	}
	for _, k := range kinds {
		replies[k.acquire] = func([]string) any { return nil }
		replies[k.release], replies[k.forceUnlock] = released, released
	}
	for _, name := range []string{"fenced_acquire", "reenter", "read_reenter", "identify"} {
		replies[name+".lua"] = func([]string) any { return 1 }
	}
	return replies
}()

func released([]string) any { return []any{1, ""} }

// renewed returns the reply for that many renewed leases.
func renewed(leases int) any {
	held := make([]any, leases)
	for i := range held {
		held[i] = 1
	}
	return held
}

// inBubble runs a test against a server that grants everything.
func inBubble(t *testing.T, options rlock.Options, test func(*testing.T, *bubble)) {
	t.Helper()
	names := map[string]string{} // by the hash of the script
	for file, source := range locktest.Scripts() {
		if file == "release_only.lua" {
			file = "release.lua" // which of them releases a lock does not matter here
		}
		sum := sha1.Sum([]byte(source))
		names[hex.EncodeToString(sum[:])] = file
	}
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{server: fakeredis.New(), scripts: maps.Clone(granted),
			calls: map[string][]time.Duration{}, start: time.Now()}
		defer b.server.Close()
		b.server.Handle("EVALSHA",
			func(args []string) any { return b.execute(names[args[1]], args[3:]) })
		redis, err := rueidis.NewClient(b.server.ClientOption())
		require.NoError(t, err)
		defer redis.Close()
		b.client = newClientOn(t, redis, options)
		defer closeClient(t, b.client) // before redis is closed
		defer b.server.Resume()        // not while the server is paused
		b.lock = b.client.NewLock("lock")
		test(t, b)
	})
}

// inBubbleOnEveryKind runs a test in a bubble for each kind of lock; the bubble's lock is of that
// kind.
func inBubbleOnEveryKind(
	t *testing.T, options rlock.Options, test func(*testing.T, *bubble, kind),
) {
	t.Helper()
	onEveryKind(t, func(t *testing.T, k kind) {
		inBubble(t, options, func(t *testing.T, b *bubble) {
			b.lock = k.lock(b.client, "lock")
			test(t, b, k)
		})
	})
}

// execute records the call of a script, and replies. args are its keys and arguments.
func (b *bubble) execute(name string, args []string) any {
	b.mu.Lock()
	b.calls[name] = append(b.calls[name], time.Since(b.start))
	script := b.scripts[name]
	b.mu.Unlock()
	return script(args)
}

// reply makes a script reply like this from now on.
func (b *bubble) reply(name string, script func(args []string) any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scripts[name] = script
}

// heldFor returns acquire's reply while another owner holds the lock for that many milliseconds.
func heldFor(milliseconds int) func([]string) any {
	return func(args []string) any {
		reply := []any{milliseconds, "another:7", -1}
		for _, key := range args {
			if strings.HasPrefix(key, "holdfast_lock_waiters") {
				return append(reply, "1763671234567890") // the ticket of a registration
			}
			if strings.HasPrefix(key, "holdfast_lock_budget") {
				return append(reply, strconv.FormatInt(time.Now().UnixMilli(), 10)) // the server's clock
			}
		}
		return reply
	}
}

// called returns when a script was called, counted from the start.
func (b *bubble) called(name string) []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls[name])
}
