package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/status"
	"holdfast/internal/doctable"
	"holdfast/internal/redistest"
	"holdfast/rlock"
)

func TestLsShowsLocksOfAllKindsAndNothingElse(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		c := p.client(t)
		plain := take(t, c.NewLock("plain"))
		take(t, c.NewFencedLock("fenced"))
		take(t, c.NewFairLock("fair"))
		p.await(t, c.NewFairLock("fair"))
		take(t, c.NewReadWriteLock("reads").Read())
		take(t, c.NewReadWriteLock("writes").Write())
		take(t, c.NewLock("{tag}order"))
		p.await(t, c.NewLock("{tag}order"))
		readers, huge := []string{"HSET", "hundred", "mode", "read"}, []string{"HSET", "huge"}
		for i := range 5000 {
			huge = append(huge, fmt.Sprint("field", i), "1")
			if i < 100 {
				readers = append(readers, fmt.Sprint(javaClient, ":", i), "1")
			}
		}
		client := "holdfast_client:{" + javaClient + "}"
		for _, command := range [][]string{
			{"HSET", "java", java, "2"}, // without expiry
			{"HSET", "both", "mode", "write", java, "1", java + ":write", "2"},
			readers,
			{"PEXPIRE", "hundred", "600000"},
			{"RPUSH", "redisson_lock_queue:{free}", java},
			{"ZADD", "holdfast_lock_waiters::{free}2", "1e15", java + " 30000 plain"},
			{"RPUSH", "redisson_lock_queue:{a}x{b}", java},
			{"HSET", client, "program", "billing", "host", "web-1", "pid", "4711", "start",
				"1700000000123", "label", ""},
			// No locks, and no queues of any.
			{"HSET", "map", "colour", "green"},
			{"HSET", "counters", java, "two"},
			{"HSET", "mixed", java, "1", "colour", "2"},
			huge,
			{"SET", "text", "x"},
			{"SET", "redisson_lock_queue:{text}", "x"},
			{"RPUSH", "redisson_lock_queue:odd", "x"}, // of no name
		} {
			p.do(t, command[1], command...)
		}

		owner := short(plain.Owner())
		own, _, _ := strings.Cut(owner, ":")
		o := p.run(t, "ls")
		require.Zero(t, o.status)
		got := rows(t, o)
		for name, want := range map[string]string{
			"plain":      `^lock ` + owner + ` 1 (30\.0|2\d\.\d) s 0$`,
			"fenced":     `^fenced ` + own + `:\d+ 1 (30\.0|2\d\.\d) s 0$`,
			"fair":       `^fair ` + own + `:\d+ 1 (30\.0|2\d\.\d) s 1$`,
			"reads":      `^read-write reader ` + own + `:\d+ 1 (30\.0|2\d\.\d) s 0$`,
			"writes":     `^read-write writer ` + own + `:\d+ 1 (30\.0|2\d\.\d) s 0$`,
			"{tag}order": `^lock ` + own + `:\d+ 1 (30\.0|2\d\.\d) s [01]$`, // it may not have registered
			"java":       `^lock billing on web-1 \(pid 4711\) 2 never ends 0$`,
			"both":       `^read-write writer billing on web-1 \(pid 4711\) 3 never ends 0$`,
			"hundred":    `^read-write 100 readers 100 (10m0s|9m\d+s) 0$`,
			"free":       `^fair - - - 1$`,
			"{free}2":    `^lock - - - 1$`,
			"{a}x{b}":    `^fair - - - 1$`,
		} {
			require.Regexp(t, want, got[name], "%s in\n%s", name, o.stdout)
			delete(got, name)
		}
		require.Empty(t, got)
		names := strings.Fields(strings.Join(firstWords(o.stdout), " "))[1:]
		require.True(t, slices.IsSorted(names), "%v", names)
		if p.cluster != nil {
			one := objects(t, p.run(t, "ls", "--json", "java"))["java"]
			require.Equal(t, p.node(t, "java").Addr(), one.Node)
			require.EqualValues(t, p.cluster.Slot(t, "java"), *one.Slot)
		}
	})
}

func TestLsShowsTheProcessOfAHolder(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		take(t, p.clientWith(t, rlock.Options{Label: "nightly"}).NewLock("a"))
		host, err := os.Hostname()
		require.NoError(t, err)
		require.Eventually(t, func() bool { // it tells so in the background
			return strings.HasPrefix(rows(t, p.run(t, "ls"))["a"],
				fmt.Sprintf("lock nightly on %s (pid %d) 1 ", host, os.Getpid()))
		}, 30*time.Second, 100*time.Millisecond)
	})
}

func firstWords(table string) (words []string) {
	for line := range strings.Lines(table) {
		words = append(words, strings.Fields(line)[0])
	}
	return words
}

// lockObject is a lock as --json has it.
type lockObject struct {
	Name    string
	Kind    string
	Holders []struct {
		Owner  string
		Count  int
		Mode   string
		Client *struct {
			Program, Host, Label, Start string
			PID                         int
		}
	}
	Waiters []struct {
		Owner, Since, Until, Mode string
		Lease                     int64 `json:"lease_ms"`
	}
	TTL         int64 `json:"ttl_ms"`
	Token       int64
	Subscribers *int
	Node        string
	Slot        *uint16
}

func objects(t *testing.T, o outcome) map[string]lockObject {
	t.Helper()
	require.Empty(t, o.stderr)
	all := map[string]lockObject{}
	for line := range strings.Lines(o.stdout) {
		var one lockObject
		require.NoError(t, json.Unmarshal([]byte(line), &one), line)
		all[one.Name] = one
	}
	return all
}

func TestLsAsJSONHasOneObjectOnEachLine(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "order:1", java, "2")
	p.hold(t, "order:2", "mode", "write", java, "1", java+":write", "1")
	p.do(t, "order:3", "HSET", "order:3", java, "1")
	p.do(t, "order:3", "SET", "redisson_lock_token:{order:3}", "17")
	p.do(t, "order:4", "RPUSH", "redisson_lock_queue:{order:4}", java, otherJava)
	p.do(t, "order:4", "ZADD", "redisson_lock_timeout:{order:4}", "4102444800000", java)
	key := "holdfast_client:{" + javaClient + "}"
	p.do(t, key, "HSET", key, "host", "web-1", "pid", "7", "start", "1700000000123", "label", "x")
	o := p.run(t, "ls", "--json")
	require.Equal(t, 4, strings.Count(o.stdout, "\n"))
	all := objects(t, o)

	one := all["order:1"]
	require.Equal(t, "lock", one.Kind)
	require.InDelta(t, 595_000, one.TTL, 5000)
	require.Equal(t, java, one.Holders[0].Owner)
	require.Equal(t, 2, one.Holders[0].Count)
	require.Equal(t, "web-1", one.Holders[0].Client.Host)
	require.Equal(t, "2023-11-14T22:13:20.123Z", one.Holders[0].Client.Start)
	require.Nil(t, one.Subscribers)
	require.Empty(t, one.Node)
	require.Nil(t, one.Slot)
	require.Len(t, all["order:2"].Holders, 2)
	require.ElementsMatch(t, []string{"read", "write"},
		[]string{all["order:2"].Holders[0].Mode, all["order:2"].Holders[1].Mode})
	require.EqualValues(t, -1, all["order:3"].TTL)
	require.EqualValues(t, 17, all["order:3"].Token)
	require.Equal(t, "fenced", all["order:3"].Kind)
	require.Zero(t, all["order:4"].TTL)
	require.Empty(t, all["order:4"].Holders)
	require.Equal(t, java, all["order:4"].Waiters[0].Owner)
	require.Regexp(t, `^2(099|100)-`, all["order:4"].Waiters[0].Until)
	require.Equal(t, otherJava, all["order:4"].Waiters[1].Owner)
}

func TestLsFindsLocksByAPattern(t *testing.T) {
	t.Parallel()
	p := single(t)
	for _, name := range []string{"order:1", "order:2", "invoice:1", "{order:3}", "{x}order:4"} {
		p.hold(t, name, java, "1")
	}
	for _, name := range []string{"{order:5}", "{x}order:5", "{invoice:5}"} {
		p.do(t, "", "RPUSH", "redisson_lock_queue:"+name, java)
	}
	p.do(t, "", "ZADD", "holdfast_lock_waiters:{order:56}", "1", java+" 1 plain")
	p.do(t, "", "ZADD", "holdfast_lock_waiters::{x}order:56", "1", java+" 1 plain")
	for pattern, want := range map[string][]string{
		"order:*":    {"order:1", "order:2", "order:5", "order:56"},
		"order:[25]": {"order:2", "order:5"},
		"{x}order:*": {"{x}order:4", "{x}order:5", "{x}order:56"},
		"nothing*":   nil,
	} {
		found := objects(t, p.run(t, "ls", "--json", pattern))
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(found)), pattern)
	}
	require.Len(t, objects(t, p.run(t, "ls", "--json", "--count", "1", "--interval", "1ms")), 10)
}

// "a" and "{a}" are two locks with one queue.
func TestLsNamesTheLockOfAQueueThatTwoShare(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "{a}", java, "1")
	p.hold(t, "b", java, "1")
	for _, name := range []string{"a", "b", "c"} {
		p.do(t, name, "RPUSH", "redisson_lock_queue:{"+name+"}", otherJava)
	}
	require.Len(t, rows(t, p.run(t, "ls")), 3)
	for name, holders := range map[string]int{"{a}": 1, "b": 1, "c": 0} {
		one := objects(t, p.run(t, "ls", "--json"))[name]
		require.Len(t, one.Holders, holders, name)
		require.Len(t, one.Waiters, 1, name)
	}
}

func TestLsWithoutLocksIsEmpty(t *testing.T) {
	t.Parallel()
	p := single(t)
	require.Equal(t, outcome{}, p.run(t, "ls"))
	require.Equal(t, outcome{}, p.run(t, "ls", "--json", "x*"))
	require.Equal(t, outcome{}, p.run(t, "ls", "--cycles"))
}

func TestLsReadsVeryLargeLocksInPart(t *testing.T) {
	t.Parallel()
	p := single(t)
	const many = 3000
	readers, queue := []string{"mode", "read"}, []string{}
	for i := range many {
		readers = append(readers, fmt.Sprint(javaClient, ":", i), "1")
		queue = append(queue, fmt.Sprint(javaClient, ":", many+i))
	}
	p.hold(t, "reads", readers...)
	p.do(t, "waits", append([]string{"RPUSH", "redisson_lock_queue:{waits}"}, queue...)...)
	for line := range strings.Lines(p.run(t, "ls", "--json").stdout) {
		var one struct {
			Holders, Waiters         []any
			MoreHolders, MoreWaiters int
		}
		line = strings.NewReplacer("more_holders", "morehOlders", "more_waiters", "morewaIters").
			Replace(line)
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		require.Equal(t, many, len(one.Holders)+one.MoreHolders+len(one.Waiters)+one.MoreWaiters)
		require.InDelta(t, 1000, len(one.Holders)+len(one.Waiters), 1)
	}
}

func TestLsUnderAnACL(t *testing.T) {
	t.Parallel()
	asUser := func(t *testing.T, rules ...string) *place {
		t.Helper()
		p := single(t)
		p.hold(t, "order:1", java, "1")
		p.do(t, "order:1", "RPUSH", "redisson_lock_queue:{order:1}", otherJava)
		p.hold(t, "secret:1", java, "1")
		p.do(t, "map", "HSET", "map", "a", "b")
		user := []string{"ACL", "SETUSER", "ops", "on", ">word", "resetchannels"}
		p.do(t, "", append(user, rules...)...)
		return p
	}
	ls := func(t *testing.T, p *place) outcome {
		t.Helper()
		return runWith(t, []string{"REDISCLI_AUTH=word"}, "ls", "--user", "ops", "--redis",
			p.nodes[0].Addr())
	}
	t.Run("with the rights that are listed", func(t *testing.T) {
		t.Parallel()
		p := asUser(t, slices.Concat(doctable.Rules(t, "../..", "The program")...)...)
		o := ls(t, p)
		require.Zero(t, o.status, o.stderr)
		require.Contains(t, rows(t, o)["order:1"], "fair")
		for _, denied := range p.nodes[0].DoStrings(t, "ACL", "LOG") {
			require.Contains(t, denied, "cmd=cluster") // rueidis asks whether it is a cluster
		}
	})
	t.Run("some keys, and queues", func(t *testing.T) {
		t.Parallel()
		o := ls(t, asUser(t, "+@all", "~order:*", "~redisson_lock_queue:{order:*"))
		require.Len(t, rows(t, o), 1)
		require.Contains(t, rows(t, o)["order:1"], "fair")
	})
	t.Run("without SCAN", func(t *testing.T) {
		t.Parallel()
		o := ls(t, asUser(t, "+@all", "~*", "-scan"))
		require.Equal(t, status.Server, o.status)
		require.Contains(t, o.stderr, "the ACL of this user does not allow this command")
	})
}

func TestLsWithANodeDownShowsTheOthers(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, redistest.WithArgs("--cluster-require-full-coverage", "no"))
	p := &place{c.Nodes, c, c.Client(t)}
	total := 0
	for i := range 30 {
		name := fmt.Sprint("order:", i)
		p.hold(t, name, java, "1")
		if p.node(t, name) != c.Nodes[2] {
			total++
		}
	}
	c.Nodes[2].Kill(t)
	o := p.run(t, "ls")
	require.Equal(t, status.Server, o.status)
	require.Contains(t, o.stderr, c.Nodes[2].Addr())
	require.Equal(t, total, strings.Count(o.stdout, "\n")-1, "%s%s", o.stdout, o.stderr)
}
