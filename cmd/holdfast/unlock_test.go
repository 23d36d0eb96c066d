//go:build unix

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/terminal"
	"holdfast/internal/wire"
	"holdfast/rlock"
)

// stuck are locks that nobody gives back, and what waits for them.
var stuck = []struct {
	name   string
	fields []string // of the hash
	waits  func(*rlock.Client, string) *rlock.Lock
}{
	{"plain", []string{java, "2"}, (*rlock.Client).NewLock},
	{"fenced", []string{java, "1"}, (*rlock.Client).NewFencedLock},
	{"fair", []string{java, "1"}, (*rlock.Client).NewFairLock},
	{"writer for writer", []string{"mode", "write", java + ":write", "2"}, newWrite},
	{"reader for writer", []string{"mode", "write", java + ":write", "1"}, newRead},
	{"writer for reader", []string{"mode", "read", java, "2"}, newWrite},
	{"writer for a writer that reads",
		[]string{"mode", "write", java, "1", java + ":write", "1"}, newWrite},
}

func newRead(c *rlock.Client, name string) *rlock.Lock  { return c.NewReadWriteLock(name).Read() }
func newWrite(c *rlock.Client, name string) *rlock.Lock { return c.NewReadWriteLock(name).Write() }

func TestUnlockWakesAWaiterOfEachKind(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		c := p.client(t)
		for i, lock := range stuck {
			flag := []string{"--force", "--owner=" + java}[i%2]
			name := fmt.Sprint("lock", i, flag)
			p.hold(t, name, lock.fields...)
			for j := 1; j <= 2; j++ { // of a reader
				key := wire.Suffix(name, java) + fmt.Sprint(":rwlock_timeout:", j)
				p.do(t, key, "SET", key, "1", "EX", "600")
			}
			w := p.await(t, lock.waits(c, name))
			o := p.run(t, "unlock", name, flag, "--yes")
			require.Zero(t, o.status, "%s: %s", lock.name, o.stderr)
			require.Contains(t, o.stdout, "released "+name+", which was held by ")
			require.Empty(t, o.stderr)
			hold := requireWoken(t, w)
			require.NotContains(t, p.node(t, name).DoMap(t, "HGETALL", name), java, lock.name)
			require.NoError(t, hold.Unlock())
		}
	})
}

func TestUnlockOfOneReaderLeavesTheOthers(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		for _, owner := range []string{java, otherJava} {
			key := wire.Suffix("rw", owner) + ":rwlock_timeout:1"
			p.hold(t, "rw", "mode", "read", owner, "1")
			p.do(t, key, "SET", key, "1", "EX", "600")
		}
		w := p.await(t, newWrite(p.client(t), "rw"))
		require.Zero(t, p.run(t, "unlock", "rw", "--owner", java, "--yes").status)
		require.Equal(t, map[string]string{"mode": "read", otherJava: "1"},
			p.node(t, "rw").DoMap(t, "HGETALL", "rw"))
		require.Zero(t, p.run(t, "unlock", "rw", "--owner", otherJava, "--yes").status)
		requireWoken(t, w)
	})
}

func TestUnlockSaysWhoHoldsTheLockInstead(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "a", java, "1")
	p.do(t, "map", "HSET", "map", "colour", "green")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"a", "--owner", otherJava}, `lock "a": not released, because ` + otherJava +
			" does not hold it\n  held by " + java},
		{[]string{"a", "--owner", javaClient}, "an owner has the form CLIENT:NUMBER\n  held by " + java},
		{[]string{"free", "--owner", java}, `lock "free": not released, because nobody holds it`},
		{[]string{"free", "--force"}, `lock "free": not released, because nobody holds it`},
		{[]string{"map", "--force"}, `lock "map": the key is not a lock (type hash)`},
	} {
		o := p.run(t, append([]string{"unlock", "--yes"}, c.args...)...)
		require.Equal(t, status.Failed, o.status)
		require.Empty(t, o.stdout)
		require.Contains(t, o.stderr, c.want)
	}
	require.Len(t, p.nodes[0].DoStrings(t, "KEYS", "*"), 2)
}

func TestUnlockNeedsToKnowWhoseLockAndThatItIsMeant(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "a", java, "1")
	for _, args := range [][]string{
		{"unlock", "a", "--yes"},
		{"unlock", "a", "--yes", "--force", "--owner", java},
		{"unlock", "a", "--force"}, // there is no terminal
		{"unlock", "--force"},
	} {
		o := p.run(t, args...)
		require.Equal(t, status.Usage, o.status, "%v: %s", args, o.stderr)
		require.NotEmpty(t, o.stderr)
	}
	require.EqualValues(t, 1, p.nodes[0].DoInt(t, "EXISTS", "a"))
}

func TestUnlockAsksOnATerminal(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int{
		"y\r": 0, "n\r": 1, "\r": 1, "\x04": 1, "\x03": status.Interrupted,
	} {
		t.Run(fmt.Sprintf("%q", answer), func(t *testing.T) {
			t.Parallel()
			p := single(t)
			p.hold(t, "a", java, "3")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			t.Cleanup(cancel)
			on, err := terminal.Start(exec.CommandContext(ctx, binary, "unlock", "a", "--force",
				"--redis", p.nodes[0].Addr()), 80, 24)
			require.NoError(t, err)
			t.Cleanup(on.Stop)
			require.NoError(t, on.WaitForText(ctx, "Release the lock? [y/N]"))
			require.Contains(t, on.Screen(), "a: held by "+short(java)+", 3 holds, ")
			require.NoError(t, on.Send(answer))
			got, err := on.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, want, got, on.Screen())
			require.Equal(t, want != 0, p.nodes[0].DoInt(t, "EXISTS", "a") == 1)
			require.Equal(t, want == 0, strings.Contains(on.Screen(), "released a, which was held"))
		})
	}
}
