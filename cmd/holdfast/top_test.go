//go:build unix

package main

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/terminal"
	"holdfast/rlock"
)

// watched is a top that runs on a terminal.
type watched struct {
	*terminal.Terminal
	t   *testing.T
	ctx context.Context
}

func (p *place) top(t *testing.T, args ...string) watched {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	args = append([]string{"top", "--interval", "200ms", "--redis", p.nodes[0].Addr()}, args...)
	on, err := terminal.Start(exec.CommandContext(ctx, binary, args...), 100, 12)
	require.NoError(t, err)
	t.Cleanup(on.Stop)
	return watched{on, t, ctx}
}

// sees blocks until the screen matches each pattern.
func (w watched) sees(patterns ...string) {
	w.t.Helper()
	for _, p := range patterns {
		is := regexp.MustCompile("(?m)" + p)
		require.NoError(w.t, w.WaitFor(w.ctx, p, is.MatchString))
	}
}

func (w watched) press(keys string) {
	w.t.Helper()
	require.NoError(w.t, w.Send(keys))
}

// ends requires that the program ends well.
func (w watched) ends() {
	w.t.Helper()
	status, err := w.Wait(w.ctx)
	require.NoError(w.t, err)
	require.Zero(w.t, status)
}

func TestTopShowsFiltersAndMarks(t *testing.T) {
	t.Parallel()
	onEachPlace(t, func(t *testing.T, p *place) {
		c := p.clientWith(t, rlock.Options{Label: "nightly"})
		order, stock := c.NewLock("order"), c.NewFairLock("stock")
		hold := take(t, order)
		take(t, stock)
		p.await(t.Context(), t, stock)
		p.hold(t, "java", java, "2")
		w := p.top(t, "--interval", "2s") // for so long are marks to be seen
		w.sees(`^holdfast top  127\.0\.0\.1:\d+  3 locks, 1 waiters  `,
			`^>  stock .* fair .* nightly on .* \(pid \d+\) .*1\n   java .*8743c9c0…:54 .*\n   order `)

		w.press("/ORD")
		w.sees(`\n/ORD`, `^>  order .*$`)
		require.NotContains(t, w.Screen(), "java")
		w.press("\x1b")
		w.sees(`^   java `)

		require.NoError(t, hold.Unlock(t.Context()))
		w.sees(`^[ >]- order `)
		w.sees(`^holdfast top .* 2 locks`)
		p.do(t, "java", "DEL", "java")
		p.hold(t, "java", otherJava, "1")
		w.sees(`^[ >]\* java .*11112222…:1`)
		take(t, c.NewLock("zebra"))
		w.sees(`^[ >]\+ zebra `)

		require.NoError(t, w.Resize(40, 6))
		w.sees(`^[ >]  stock +fair +nightly`)
		require.NoError(t, w.Resize(120, 20))
		w.sees(`\(pid \d+\)`)
		w.press("q")
		w.ends()
	})
}

func TestTopInspects(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "java", java, "2")
	w := p.top(t)
	w.sees(`^>  java `)
	w.press("\r")
	w.sees(java)
	p.do(t, "java", "DEL", "java")
	w.sees(`free`)
	w.press("\r")
	w.sees(`nobody holds a lock`)
	w.press("\x03")
	w.ends()
}

func TestTopUnlocksAfterAQuestion(t *testing.T) {
	t.Parallel()
	p := single(t)
	c := p.client(t)
	hold := take(t, c.NewLock("order"))
	waiter := p.await(t.Context(), t, p.client(t).NewLock("order"))
	w := p.top(t, "--interval", "2s")
	w.sees(`^>  order `)
	w.press("u")
	w.sees(`^Unlock order, held by .*\? \(y/n\)`)
	w.press("n")
	w.sees(`^not unlocked`)
	require.True(t, hold.Valid())
	held, err := c.NewLock("order").IsLocked(t.Context())
	require.NoError(t, err)
	require.True(t, held)
	require.Empty(t, waiter.acquired)

	w.press("u")
	w.sees(`\(y/n\)`)
	w.press("y")
	waiter.requireWoken(t)
	w.sees(`^unlocked order, which was held by ` + regexp.QuoteMeta(short(hold.Owner())))
	w.sees(`^>\* order `)
	w.press("q")
	w.ends()
}

// The terminal is left as it was: the screen of before is back, and the cursor is visible.
func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "java", java, "1")
	for _, keys := range []string{"q", "\x03"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		script := `echo before; stty -a >"$3"; "$1" top --redis "$2"; echo "status $?"; stty -a >"$4"; ` +
			`cmp "$3" "$4" && echo same`
		dir := t.TempDir()
		on, err := terminal.Start(exec.CommandContext(ctx, "sh", "-c", script, "sh", binary,
			p.nodes[0].Addr(), dir+"/1", dir+"/2"), 80, 10)
		require.NoError(t, err)
		t.Cleanup(on.Stop)
		require.NoError(t, on.WaitForText(ctx, ">  java"))
		require.NotContains(t, on.Screen(), "before")
		require.NoError(t, on.Send(keys))
		_, err = on.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, "before\nstatus 0\nsame\n", on.Screen())
	}
}

func TestTopGoesOnWhenTheServerIsBack(t *testing.T) {
	t.Parallel()
	p := single(t)
	p.hold(t, "java", java, "1")
	p.hold(t, "other", otherJava, "1")
	w := p.top(t)
	w.sees(`^>  java `)
	p.nodes[0].Pause(t)
	w.press("j") // keys work meanwhile
	w.sees(`^>  other `)
	w.sees(`^as it was at \d\d:\d\d:\d\d, no reply since: `)
	w.sees(`^   java `)
	w.press("k")
	w.sees(`^>  java `)
	p.nodes[0].Resume(t)
	require.NoError(t, w.WaitFor(w.ctx, "no error", func(screen string) bool {
		return !strings.Contains(screen, "no reply")
	}))
	w.press("q")
	w.ends()
}

func TestTopNeedsATerminalAndAServer(t *testing.T) {
	t.Parallel()
	o := run(t, "top")
	require.Equal(t, status.Usage, o.status)
	require.Equal(t, "holdfast: top needs a terminal: use holdfast ls\n", o.stderr)
	o = run(t, "top", "--interval", "1ms")
	require.Equal(t, status.Usage, o.status)
	require.Contains(t, o.stderr, "--interval: want 100ms or more")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	on, err := terminal.Start(
		exec.CommandContext(ctx, binary, "top", "--redis", "127.0.0.1:1"), 80, 10)
	require.NoError(t, err)
	defer on.Stop()
	got, err := on.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, status.Server, got)
	require.Contains(t, on.Screen(), "Redis at 127.0.0.1:1")
}
