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
	"holdfast/lua"
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
			for _, flag := range []string{"--force", "--owner=" + java} {
				name := fmt.Sprint("lock", i, flag)
				p.hold(t, name, lock.fields...)
				for j := 1; j <= 2; j++ { // of a reader
					key := lua.Suffix(name, java) + fmt.Sprint(":rwlock_timeout:", j)
					p.do(t, key, "SET", key, "1", "EX", "600")
				}
				w := p.await(t.Context(), t, lock.waits(c, name))
				o := p.run(t, "unlock", name, flag, "--yes")
				require.Zero(t, o.status, "%s: %s", lock.name, o.stderr)
				require.Contains(t, o.stdout, "released "+name+", which was held by ")
				require.Empty(t, o.stderr)
				hold := w.requireWoken(t)
				require.NotContains(t, p.node(t, name).DoMap(t, "HGETALL", name), java, lock.name)
				require.NoError(t, hold.Unlock(t.Context()))
			}
		}
	})
}

func TestUnlockKeepsTheOrderOfAFairQueue(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		p.hold(t, "fair", java, "1")
		var queue []*waiting
		for range 3 {
			queue = append(queue, p.await(t.Context(), t, p.client(t).NewFairLock("fair")))
		}
		o := p.run(t, "unlock", "fair", "--force", "--yes")
		require.Contains(t, o.stdout, "3 wait")
		for _, w := range queue {
			require.NoError(t, w.requireWoken(t).Unlock(t.Context()))
		}
	})
}

func TestUnlockLeavesTheTokenOfAFencedLock(t *testing.T) {
	t.Parallel()
	p := single(t)
	l := p.client(t).NewFencedLock("fenced")
	before := take(t, l).Token()
	require.Zero(t, p.run(t, "unlock", "fenced", "--force", "--yes").status)
	require.Equal(t, before+1, take(t, l).Token())
}

func TestUnlockOfOneReaderLeavesTheOthers(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		for _, owner := range []string{java, otherJava} {
			key := lua.Suffix("rw", owner) + ":rwlock_timeout:1"
			p.hold(t, "rw", "mode", "read", owner, "1")
			p.do(t, key, "SET", key, "1", "EX", "600")
		}
		w := p.await(t.Context(), t, newWrite(p.client(t), "rw"))
		require.Zero(t, p.run(t, "unlock", "rw", "--owner", java, "--yes").status)
		require.Equal(t, map[string]string{"mode": "read", otherJava: "1"},
			p.node(t, "rw").DoMap(t, "HGETALL", "rw"))
		require.Zero(t, p.run(t, "unlock", "rw", "--owner", otherJava, "--yes").status)
		w.requireWoken(t)
	})
}

func TestUnlockFreesAllReadersByForce(t *testing.T) {
	t.Parallel()
	p := single(t)
	readers := []string{"mode", "read"}
	for i := range 100 {
		owner := fmt.Sprint(javaClient, ":", i)
		readers = append(readers, owner, "1")
		p.do(t, "rw", "SET", "{rw}:"+owner+":rwlock_timeout:1", "1", "EX", "600")
	}
	p.hold(t, "rw", readers...)
	o := p.run(t, "unlock", "rw", "--force", "--yes")
	require.Contains(t, o.stdout, "100 readers")
	require.Empty(t, p.nodes[0].DoStrings(t, "KEYS", "*"))
}

func TestHolderThatLivesLearnsThatItsLockWasTaken(t *testing.T) {
	t.Parallel()
	p := single(t)
	c := p.clientWith(t, rlock.Options{WatchdogLease: 2 * time.Second})
	hold := take(t, c.NewLock("plain"))
	o := p.run(t, "unlock", "plain", "--owner", hold.Owner(), "--yes")
	require.Zero(t, o.status, o.stderr)
	<-hold.Done()
	require.ErrorIs(t, hold.Err(), rlock.ErrLost)
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
		{[]string{"a", "--owner", otherJava}, `"a" is not held by ` + otherJava + "\n  held by " + java},
		{[]string{"a", "--owner", javaClient}, "an owner is CLIENT:NUMBER\n  held by " + java},
		{[]string{"free", "--owner", java}, `"free" is free`},
		{[]string{"free", "--force"}, `"free" is free`},
		{[]string{"map", "--force"}, `"map" is a hash: not a lock`},
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

// ask starts unlock --force on a terminal, and returns when it asks.
func ask(t *testing.T, p *place) (*terminal.Terminal, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	on, err := terminal.Start(exec.CommandContext(ctx, binary, "unlock", "a", "--force", "--redis",
		p.nodes[0].Addr()), 80, 24)
	require.NoError(t, err)
	t.Cleanup(on.Stop)
	require.NoError(t, on.WaitForText(ctx, "Release it? [y/N]"))
	return on, ctx
}

func TestUnlockAsksOnATerminal(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]int{
		"y\r": 0, "yes\r": 0, "Y\r": 0, "n\r": 1, "\r": 1, "what\r": 1, "\x04": 1,
		"\x03": status.Interrupted,
	} {
		t.Run(fmt.Sprintf("%q", answer), func(t *testing.T) {
			t.Parallel()
			p := single(t)
			p.hold(t, "a", java, "3")
			on, ctx := ask(t, p)
			require.Contains(t, on.Screen(), "a: held by "+short(java)+", 3 levels, ")
			require.NoError(t, on.Send(answer))
			got, err := on.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, want, got, on.Screen())
			require.Equal(t, want != 0, p.nodes[0].DoInt(t, "EXISTS", "a") == 1)
			require.Equal(t, want == 0, strings.Contains(on.Screen(), "released a, which was held"))
		})
	}
}

func TestUnlockLeavesALockThatChangedHandsWhileItAsked(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "a", java, "1")
	on, ctx := ask(t, p)
	p.do(t, "a", "DEL", "a")
	p.hold(t, "a", otherJava, "1")
	require.NoError(t, on.Send("y\r"))
	got, err := on.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, status.Failed, got)
	require.Contains(t, on.Screen(), "has changed hands")
	require.Equal(t, []string{otherJava}, p.nodes[0].DoStrings(t, "HKEYS", "a"))
}

func TestUnlockWithoutTheChannelSaysThatWaitersWereNotWoken(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "a", java, "1")
	p.do(t, "", "ACL", "SETUSER", "ops", "on", ">word", "+@all", "~*", "resetchannels")
	o := runWith(t, []string{"REDISCLI_AUTH=word"}, "unlock", "a", "--force", "--yes", "--user", "ops",
		"--redis", p.nodes[0].Addr())
	require.Zero(t, o.status, o.stderr)
	require.Contains(t, o.stdout, "released a")
	require.Contains(t, o.stderr, "waiters could not be woken")
	require.Contains(t, o.stderr, "NOPERM")
}
