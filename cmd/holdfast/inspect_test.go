//go:build unix

package main

import (
	"bufio"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/status"
)

func TestInspectShowsTheQueueOfAFairLockInOrder(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		p.hold(t, "fair", java, "2")
		key := "holdfast_client:{" + javaClient + "}"
		p.do(t, key, "HSET", key, "program", "billing", "host", "web-1", "pid", "4711", "start",
			"1700000000123", "label", "nightly")
		p.await(t, p.client(t).NewFairLock("fair"))
		p.await(t, p.client(t).NewFairLock("fair"))
		queue := p.node(t, "fair").DoStrings(t, "LRANGE", "redisson_lock_queue:{fair}", "0", "-1")
		o := p.run(t, "inspect", "fair")
		require.Zero(t, o.status, o.stderr)
		want := `^lock       fair
kind       fair
state      held, expires in (10m0s|9m\d+s)
holder     ` + java + ` holds 2 times
           nightly \(billing\) on web-1, pid 4711, running for \d+h\d+m\d+s
waiter     1\. ` + queue[0] + ` is queued, keeps its place for [\dms. ]+
waiter     2\. ` + queue[1] + ` is queued, keeps its place for [\dms. ]+
listeners  2
`
		if p.cluster != nil {
			want += "node       " + p.node(t, "fair").Addr() + `, slot \d+` + "\n"
		}
		require.Regexp(t, want+"$", o.stdout)

		one := objects(t, p.run(t, "inspect", "--json", "fair"))["fair"]
		require.Equal(t, queue[0], one.Waiters[0].Owner)
		require.Equal(t, queue[1], one.Waiters[1].Owner)
		require.Equal(t, 2, *one.Subscribers)
		require.Equal(t, p.cluster != nil, one.Node != "")
		require.Equal(t, "billing", one.Holders[0].Client.Program)
	})
}

func TestInspectShowsRegistrationsAndTheToken(t *testing.T) {
	t.Parallel()
	p := single(t) // on a cluster with classic channels nobody registers
	c := p.client(t)
	token := take(t, c.NewFencedLock("fenced")).Token()
	require.EqualValues(t, 1, token)
	p.await(t, p.client(t).NewFencedLock("fenced"))
	p.waitForRegistration(t, "fenced")
	o := p.run(t, "inspect", "fenced")
	require.Regexp(t, `(?m)^kind       fenced$`, o.stdout)
	require.Regexp(t, `(?m)^state      held, expires in (30\.0|2\d\.\d) s$`, o.stdout)
	require.Regexp(t, `(?m)^waiter     1\. \S+:\d+ is registered for a lease of [\dms.]+, `+
		`waiting for \d`, o.stdout)
	require.Regexp(t, `(?m)^token      1$`, o.stdout)
	require.Regexp(t, `(?m)^listeners  1$`, o.stdout)
	one := objects(t, p.run(t, "inspect", "--json", "fenced"))["fenced"]
	since, err := time.Parse(time.RFC3339Nano, one.Waiters[0].Since)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), since, 30*time.Second)
	require.Positive(t, one.Waiters[0].Lease)
}

func TestInspectShowsReadersAndTheWriterThatWaits(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		p.hold(t, "rw", "mode", "read", java, "2", otherJava, "1")
		for _, key := range []string{"{rw}:" + java + ":rwlock_timeout:1",
			"{rw}:" + java + ":rwlock_timeout:2", "{rw}:" + otherJava + ":rwlock_timeout:1"} {
			p.do(t, key, "SET", key, "1", "EX", "600")
		}
		p.await(t, newWrite(p.client(t), "rw"))
		writer := "holdfast_rwlock_writer:{rw}"
		require.Eventually(t, func() bool { return p.node(t, writer).DoInt(t, "EXISTS", writer) == 1 },
			20*time.Second, 10*time.Millisecond)
		o := p.run(t, "inspect", "rw")
		require.Contains(t, o.stdout, "holder     "+java+" reads 2 times\n")
		require.Contains(t, o.stdout, "holder     "+otherJava+" reads\n")
		require.Regexp(t, `waiter     1\. \S+:\d+ waits to write, and new readers wait behind it, `+
			`waiting for \d`, o.stdout)
	})
}

func TestInspectOfNothingSaysSo(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.do(t, "map", "HSET", "map", "colour", "green")
	p.do(t, "text", "SET", "text", "x")
	p.do(t, "stream", "XADD", "stream", "*", "a", "b")
	for name, want := range map[string]string{
		"none": `lock "none": not found, because nobody holds it or waits for it; ` +
			"holdfast ls lists all locks",
		"map":    `lock "map": the key is not a lock (type hash); check the name`,
		"text":   `lock "text": the key is not a lock (type string); check the name`,
		"stream": `lock "stream": the key is not a lock (type stream); check the name`,
	} {
		o := p.run(t, "inspect", name)
		require.Equal(t, outcome{"", "holdfast: " + want + "\n", status.Failed}, o)
	}
}

func TestInspectWatchPrintsWhatChanged(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "a", java, "1")
	cmd := exec.CommandContext(t.Context(), binary, "inspect", "--watch", "--json", "a", "--redis",
		p.nodes[0].Addr())
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	next := func() lockObject {
		require.True(t, lines.Scan())
		one := objects(t, outcome{stdout: lines.Text() + "\n"})
		require.Contains(t, one, "a")
		return one["a"]
	}
	require.Equal(t, java, next().Holders[0].Owner)
	looks := func() int { return p.nodes[0].CommandStats(t)["evalsha"] }
	before := looks()
	require.Eventually(t, func() bool { return looks() > before+1 }, 30*time.Second,
		50*time.Millisecond) // it printed nothing, as the next line shows
	p.do(t, "a", "HSET", "a", java, "2")
	require.Equal(t, 2, next().Holders[0].Count)
	p.do(t, "a", "DEL", "a")
	require.Empty(t, next().Holders)
	p.hold(t, "a", otherJava, "1")
	require.Equal(t, otherJava, next().Holders[0].Owner)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
}
