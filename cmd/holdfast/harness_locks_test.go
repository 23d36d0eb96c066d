package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"holdfast/internal/locktest"
	"holdfast/internal/redistest"
	"holdfast/internal/survey"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

// Owners as Redisson names them: a client, and the id of a thread.
const (
	javaClient = "8743c9c0-0795-4907-87fd-6c719a6b4586"
	java       = javaClient + ":54"
	otherJava  = "11112222-3333-4444-8555-666677778888:1"
)

// place is a Redis with locks.
type place struct {
	nodes   []*redistest.Server
	cluster *redistest.Cluster // nil if it is none
	redis   rueidis.Client
}

// onEachPlace runs a test on a single node and on a cluster.
func onEachPlace(t *testing.T, test func(t *testing.T, p *place)) {
	t.Helper()
	t.Run("single node", func(t *testing.T) {
		t.Parallel()
		test(t, single(t))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.StartCluster(t, 3)
		test(t, &place{c.Nodes, c, c.Client(t)})
	})
}

func single(t *testing.T) *place {
	t.Helper()
	s := redistest.Start(t)
	return &place{nodes: []*redistest.Server{s}, redis: s.Client(t)}
}

// do runs a command on the node that has the key.
func (p *place) do(t *testing.T, key string, args ...string) {
	t.Helper()
	p.node(t, key).Do(t, args...)
}

func (p *place) node(t *testing.T, key string) *redistest.Server {
	t.Helper()
	if p.cluster == nil {
		return p.nodes[0]
	}
	return p.cluster.Owner(t, p.cluster.Slot(t, key))
}

// hold makes an owner hold a lock, as Redisson would. Fields are owners and counts, or mode.
func (p *place) hold(t *testing.T, lock string, fields ...string) {
	t.Helper()
	p.do(t, lock, append([]string{"HSET", lock}, fields...)...)
	p.do(t, lock, "PEXPIRE", lock, "600000")
}

// client returns a client that does not tell Redis who it is: all are in this process.
func (p *place) client(t *testing.T) *rlock.Client {
	t.Helper()
	return p.clientWith(t, rlock.Options{Anonymous: true})
}

func (p *place) clientWith(t *testing.T, options rlock.Options) *rlock.Client {
	t.Helper()
	c, err := rlock.New(p.redis, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.WithoutCancel(t.Context()))) })
	return c
}

// run runs the program against this Redis.
func (p *place) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return run(t, append(args, "--redis", p.nodes[0].Addr())...)
}

// take acquires a lock until the end of the test.
func take(t *testing.T, l *rlock.Lock) *rlock.Hold {
	t.Helper()
	hold, err := l.Lock(t.Context(), rlock.Watchdog)
	require.NoError(t, err)
	t.Cleanup(func() { _ = hold.Unlock() })
	return hold
}

// await waits for a lock in the background. It returns when it listens to releases of the lock.
func (p *place) await(t *testing.T, l *rlock.Lock) <-chan locktest.Outcome {
	t.Helper()
	listeners := func() (total int) {
		queue := p.node(t, l.Name()).DoStrings(t, "LRANGE", wire.QueueKey(l.Name()), "0", "-1")
		for _, channel := range survey.ReleaseChannels(l.Name(), queue) {
			total += p.listeners(t, channel)
		}
		return total
	}
	before := listeners()
	w := locktest.LockInBackground(t.Context(), l, rlock.Watchdog)
	locktest.Eventually(t, func() bool { return listeners() > before }, "nobody waits for "+l.Name())
	return w
}

// waitForRegistration returns when a waiter is registered to be granted the lock.
func (p *place) waitForRegistration(t *testing.T, lock string) {
	t.Helper()
	key := "holdfast_lock_waiters:{" + lock + "}"
	locktest.Eventually(t, func() bool { return p.node(t, key).DoInt(t, "ZCARD", key) == 1 }, key)
}

// listeners counts connections that listen on a channel.
func (p *place) listeners(t *testing.T, channel string) (total int) {
	t.Helper()
	for _, node := range p.nodes {
		for _, question := range []string{"NUMSUB", "SHARDNUMSUB"} {
			reply, err := node.Call("PUBSUB", question, channel)
			if err == nil { // servers before Redis 7 do not know the second
				total += int(reply.([]any)[1].(int64))
			}
		}
	}
	return total
}

// requireWoken requires that a waiter gets the lock, much sooner than by asking every 5 s.
func requireWoken(t *testing.T, w <-chan locktest.Outcome) *rlock.Hold {
	t.Helper()
	select {
	case o := <-w:
		require.NoError(t, o.Err)
		return o.Hold
	case <-time.After(2500 * time.Millisecond):
		require.FailNow(t, "the waiter was not woken")
		return nil
	}
}

// rows returns the rows of a table, without its header, by the first word. Gaps are one blank.
func rows(t *testing.T, o outcome) map[string]string {
	t.Helper()
	require.Empty(t, o.stderr)
	all := map[string]string{}
	for i, line := range strings.Split(strings.TrimSpace(o.stdout), "\n") {
		words := strings.Fields(line)
		if i > 0 && len(words) > 0 {
			all[words[0]] = strings.Join(words[1:], " ")
		}
	}
	return all
}

// short returns an owner as tables show it.
func short(owner string) string {
	client, number, _ := strings.Cut(owner, ":")
	return fmt.Sprintf("%.8s…:%s", client, number)
}
