package redlock_test

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/fakeredis"
	"holdfast/internal/locktest"
	"holdfast/redlock"
	"holdfast/rlock"
)

// bubble is a lock over five servers in a testing/synctest bubble, where time is exact: it passes
// only while all goroutines wait.
type bubble struct {
	nodes   []*bubbleNode
	clients []*rlock.Client
	lock    *redlock.Lock
	start   time.Time
}

// bubbleNode is a server whose replies the test decides.
type bubbleNode struct {
	server *fakeredis.Server
	client *rlock.Client
	start  time.Time

	mu      sync.Mutex
	scripts map[string]func(args []string) any // guarded by mu; by file name
	calls   map[string][]time.Duration         // guarded by mu; when each was called, from start
}

// granting returns the replies of scripts when nothing is in the way.
func granting() map[string]func([]string) any {
	return map[string]func([]string) any{
		"identify.lua":       func([]string) any { return 1 },
		"quorum_acquire.lua": func([]string) any { return nil },
		"reenter.lua":        func([]string) any { return 1 },
		"release.lua":        func([]string) any { return []any{1, ""} },
		"renew.lua": func(args []string) any {
			held := make([]any, len(args)/2)
			for i := range held {
				held[i] = 1
			}
			return held
		},
	}
}

// scriptNames returns the files of the scripts, by their hashes.
func scriptNames() map[string]string {
	names := map[string]string{}
	for file, source := range locktest.Scripts() {
		if file == "release_only.lua" {
			file = "release.lua" // which of them releases a lock does not matter here
		}
		sum := sha1.Sum([]byte(source))
		names[hex.EncodeToString(sum[:])] = file
	}
	return names
}

// inBubble runs a test with five servers that grant everything.
func inBubble(t *testing.T, options redlock.Options, test func(*testing.T, *bubble)) {
	t.Helper()
	inBubbleOf(t, rlock.Options{}, options, test)
}

// inBubbleOf is inBubble with options for the clients.
func inBubbleOf(
	t *testing.T, of rlock.Options, options redlock.Options, test func(*testing.T, *bubble),
) {
	t.Helper()
	names := scriptNames()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{start: time.Now()}
		for i := range 5 {
			n := &bubbleNode{
				server:  fakeredis.New(),
				start:   b.start,
				scripts: granting(),
				calls:   map[string][]time.Duration{},
			}
			defer n.server.Close()
			n.server.Handle("EVALSHA",
				func(args []string) any { return n.execute(names[args[1]], args[3:]) })
			redis, err := rueidis.NewClient(n.server.ClientOption())
			require.NoError(t, err)
			defer redis.Close()
			of.Server = called(i)
			n.client = newClientOn(t, redis, of)
			defer closeClient(t, n.client) // before redis is closed
			defer n.server.Resume()        // not while the server is paused
			b.nodes, b.clients = append(b.nodes, n), append(b.clients, n.client)
		}
		b.lock = redlock.NewOn(name, options, b.clients...)
		test(t, b)
		for _, n := range b.nodes {
			n.server.Resume()
		}
	})
}

// execute records the call of a script, and replies. args are its keys and arguments.
func (n *bubbleNode) execute(script string, args []string) any {
	n.mu.Lock()
	n.calls[script] = append(n.calls[script], time.Since(n.start))
	reply := n.scripts[script]
	n.mu.Unlock()
	return reply(args)
}

// reply makes a script reply like this from now on.
func (n *bubbleNode) reply(script string, reply func(args []string) any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.scripts[script] = reply
}

// delay makes a script reply as before, but later by d.
func (n *bubbleNode) delay(script string, d time.Duration) {
	n.reply(script, func(args []string) any {
		time.Sleep(d)
		return granting()[script](args)
	})
}

// called returns when a script was called, counted from the start.
func (n *bubbleNode) called(script string) []time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]time.Duration(nil), n.calls[script]...)
}

// rounds returns when nodes were asked for the lock. A node need not be asked when the others have
// refused.
func (b *bubble) rounds() []time.Duration {
	var asked []time.Duration
	for _, n := range b.nodes {
		asked = append(asked, n.called("quorum_acquire.lua")...)
	}
	slices.Sort(asked)
	return slices.Compact(asked)
}

// heldBy returns the reply that an owner holds the lock for that many milliseconds.
func heldBy(owner string, milliseconds int) func([]string) any {
	return func([]string) any { return []any{milliseconds, owner, -1} }
}
