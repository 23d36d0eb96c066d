package rlock_test

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/locktest"
	"holdfast/rlock"
)

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
var granted = map[string]func([]string) any{
	"acquire.lua":                func([]string) any { return nil },
	"fair_acquire.lua":           func([]string) any { return nil },
	"read_acquire.lua":           func([]string) any { return nil },
	"write_acquire.lua":          func([]string) any { return nil },
	"fenced_acquire.lua":         func([]string) any { return 1 },
	"reenter.lua":                func([]string) any { return 1 },
	"read_reenter.lua":           func([]string) any { return 1 },
	"release.lua":                released,
	"fair_release.lua":           released,
	"read_release.lua":           released,
	"write_release.lua":          released,
	"force_unlock.lua":           released,
	"fair_force_unlock.lua":      released,
	"readwrite_force_unlock.lua": released,
	"identify.lua":               func([]string) any { return 1 },
	"identity.lua":               func([]string) any { return []any{} },
	"inspect.lua":                func([]string) any { return []any{-2, []any{}} },
	"fair_inspect.lua":           func([]string) any { return []any{-2, []any{}, []any{}} },
	"fenced_inspect.lua":         func([]string) any { return []any{-2, []any{}, "1"} },
	"renew.lua":                  func(args []string) any { return renewed(len(args) / 2) },
	"read_renew.lua":             func(args []string) any { return renewed(len(args) / 3) },
}

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
		b := &bubble{
			server:  fakeredis.New(),
			scripts: map[string]func([]string) any{},
			calls:   map[string][]time.Duration{},
			start:   time.Now(),
		}
		defer b.server.Close()
		for name, script := range granted {
			b.scripts[name] = script
		}
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
				return append(
					reply,
					strconv.FormatInt(time.Now().UnixMilli(), 10),
				) // the clock of the server
			}
		}
		return reply
	}
}

// called returns when a script was called, counted from the start.
func (b *bubble) called(name string) []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Duration(nil), b.calls[name]...)
}
