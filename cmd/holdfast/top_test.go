//go:build unix

package main

import (
	"context"
	"os/exec"
	"regexp"
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
	args = append([]string{"top", "--interval", "500ms", "--redis", p.nodes[0].Addr()}, args...)
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

// Whether changes are marked is tested in internal/top: a mark is gone after half a second.
func TestTopShowsAndFilters(t *testing.T) {
	t.Parallel()
	p := single(t)
	c := p.clientWith(t, rlock.Options{Label: "nightly"})
	order, stock := c.NewLock("order"), c.NewFairLock("stock")
	hold := take(t, order)
	take(t, stock)
	p.await(t, stock)
	p.hold(t, "java", java, "2")
	w := p.top(t)
	w.sees(`^holdfast top  127\.0\.0\.1:\d+  3 locks, 1 waiters  `,
		`^>  stock .* fair .* nightly on .* \(pid \d+\) .*1\n   java .*8743c9c0…:54 .*\n   order `)

	w.press("/ORD")
	w.sees(`\n/ORD`, `^>  order .*$`)
	require.NotContains(t, w.Screen(), "java")
	w.press("\x1b")
	w.sees(`^   java `)

	require.NoError(t, hold.Unlock())
	w.sees(`^holdfast top .* 2 locks`)
	p.do(t, "java", "DEL", "java")
	p.hold(t, "java", otherJava, "1")
	w.sees(`^[ >][ *] java .*11112222…:1`)
	take(t, c.NewLock("zebra"))
	w.sees(`^[ >][ +] zebra `)

	require.NoError(t, w.Resize(40, 6))
	w.sees(`^[ >]  stock +fair +nightly`)
	require.NoError(t, w.Resize(120, 20))
	w.sees(`\(pid \d+\)`)
	w.press("q")
	w.ends()
}

func TestTopNeedsATerminalAndAServer(t *testing.T) {
	t.Parallel()
	o := run(t, "top")
	require.Equal(t, status.Usage, o.status)
	require.Equal(t, "holdfast: top needs a terminal; use holdfast ls\n", o.stderr)
	o = run(t, "top", "--interval", "1ms")
	require.Equal(t, status.Usage, o.status)
	require.Contains(t, o.stderr, "--interval must be at least 100ms")

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
