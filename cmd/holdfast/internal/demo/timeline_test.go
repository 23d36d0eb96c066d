package demo

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// short is a history with something of everything, and ada and ben alone at the counter.
func short() []event {
	return []event{
		{At: 0, Kind: waiting, Lock: "counter", Process: "ada"},
		{At: 1 * ms, Kind: waiting, Lock: "counter", Process: "ben"},
		{At: 2 * ms, Kind: entered, Lock: "counter", Process: "ada", Owner: "a:1"},
		{At: 3 * ms, Kind: waiting, Lock: "takeover", Process: "gina"},
		{At: 4 * ms, Kind: entered, Lock: "takeover", Process: "gina", Owner: "g:1"},
		{At: 5 * ms, Kind: waiting, Lock: "takeover", Process: "hugo"},
		{At: 6 * ms, Kind: entered, Lock: "timeout", Process: "iris", Owner: "i:1"},
		{At: 8 * ms, Kind: waiting, Lock: "timeout", Process: "jack"},
		{At: 9 * ms, Kind: entered, Lock: "watchdog", Process: "eve", Owner: "e:1"},
		{At: 10 * ms, Kind: waiting, Lock: "counter", Process: "cleo"},
		{At: 500 * ms, Kind: nested, Lock: "counter", Process: "ada", Count: 2},
		{At: 900 * ms, Kind: unnested, Lock: "counter", Process: "ada"},
		{At: 1000 * ms, Kind: leaving, Lock: "counter", Process: "ada", Found: "ada"},
		{At: 1001 * ms, Kind: left, Lock: "counter", Process: "ada"},
		{At: 1002 * ms, Kind: entered, Lock: "counter", Process: "ben", Owner: "b:1"},
		{At: 1508 * ms, Kind: gaveUp, Lock: "timeout", Process: "jack", Owner: "i:1", TTL: 28_498 * ms},
		{At: 2000 * ms, Kind: killed, Lock: "takeover", Process: "gina"},
		{At: 2005 * ms, Kind: ended, Lock: "takeover", Process: "gina"},
		{At: 2100 * ms, Kind: leaving, Lock: "counter", Process: "ben", Found: "ben"},
		{At: 2912 * ms, Kind: entered, Lock: "takeover", Process: "hugo", Owner: "h:1"},
		{At: 4009 * ms, Kind: leaving, Lock: "watchdog", Process: "eve", Found: "eve"},
		{At: 4100 * ms, Kind: failed, Lock: "takeover", Process: "hugo", Error: "no route to host"},
	}
}

func TestPlainLinesTellTheStory(t *testing.T) {
	var out bytes.Buffer
	p := newPlain(&out, "Redis at host:1, 10 processes", scenes(false))
	for _, e := range short() {
		p.show(e)
	}
	require.Equal(t, strings.TrimPrefix(`
holdfast demo: Redis at host:1, 10 processes
  counter   4 processes, 48 sections, never two at a time
  watchdog  a lease of 1 s, renewed while its holder lives
  takeover  SIGKILL: nobody renews the lease of 1 s any more
  timeout   a lease of 30 s, and one who waits 1.5 s
  0.002 s  counter   ada   holds; ben waits
  0.004 s  takeover  gina  holds
  0.005 s  takeover  hugo  waits, for up to 10 s
  0.006 s  timeout   iris  holds
  0.008 s  timeout   jack  waits, for up to 1.5 s
  0.009 s  watchdog  eve   holds
  0.500 s  counter   ada   re-enters, level 2
  1.002 s  counter   ben   holds, 2.0 ms after ada let go; cleo waits
  1.508 s  timeout   jack  gives up after 1.5 s: iris holds it for another 28.5 s
  2.000 s  takeover  gina  is killed (SIGKILL); hugo waits
  2.912 s  takeover  hugo  holds, 0.91 s after gina was killed
  4.009 s  watchdog  eve   lets go after 4 s, 4 leases of 1 s
  4.100 s  takeover  hugo  fails: no route to host
`, "\n"), out.String())
}

func TestLivePictureTellsTheStory(t *testing.T) {
	l := newLive(new(bytes.Buffer), "Redis at host:1, 10 processes", scenes(false), 80, false)
	for _, e := range short() {
		l.show(e)
	}
	l.now = 4200 * ms
	require.Equal(t, strings.TrimPrefix(`
holdfast demo  Redis at host:1, 10 processes                              4.2 s

counter   4 processes, 48 sections, never two at a time
  ada   ███▓▓█                                          1/12
  ben   ······██████                                    1/12  woken in 2.0 ms
  cleo  ························
  dan

watchdog  a lease of 1 s, renewed while its holder lives
  eve   ████████████████████████                        outlived its lease
  finn

takeover  SIGKILL: nobody renews the lease of 1 s any more
  gina  ███████████✗╌╌╌╌╌                               killed
  hugo  ·················███████                        failed

timeout   a lease of 30 s, and one who waits 1.5 s
  iris  ████████████████████████                        holds
  jack  ········✗                                       held for another 28.5 s
        0 s  1 s   2 s   3 s   4 s   5 s   6 s   7 s
  █ holds  ▓ re-entered  · waits  ╌ dead, still locked  ✗ killed, or gave up
`, "\n"), trimmed(l.picture()))
	require.Equal(t, len(l.picture())+2, linesNeeded(scenes(false)), "the verdict and a prompt have to fit too")
}

// The last thing a column may show is what is known, and it is drawn smaller when there is no room.
func TestLongPictureIsDrawnSmaller(t *testing.T) {
	l := newLive(new(bytes.Buffer), "", scenes(false), 80, false)
	l.show(event{At: 0, Kind: entered, Lock: "watchdog", Process: "eve"})
	l.now = 11_999 * ms
	require.Equal(t, strings.Repeat("█", l.columns()), l.timeline("eve"))
	require.Equal(t, "0 s    2 s     4 s     6 s     8 s     10 s", strings.TrimSpace(l.axis()))
}

func TestColoursAddNothingButColours(t *testing.T) {
	picture := func(colours bool) string {
		l := newLive(new(bytes.Buffer), "title", scenes(false), 80, colours)
		for _, e := range short() {
			l.show(e)
		}
		l.now = 4200 * ms
		return strings.Join(l.picture(), "\n")
	}
	coloured := picture(true)
	require.Contains(t, coloured, string(green)+"█"+reset)
	require.Equal(t, picture(false), regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(coloured, ""))
}

func TestTerminalIsLeftAsItWasFound(t *testing.T) {
	var out bytes.Buffer
	l := newLive(&out, "title", scenes(false), 80, false)
	l.tick(0)
	l.tick(redraw / 2) // too early to draw again
	l.tick(redraw)
	l.close()
	require.True(t, strings.HasPrefix(out.String(), hideCursor+noWrap))
	require.True(t, strings.HasSuffix(out.String(), wrap+showCursor))
	require.Equal(t, 3, strings.Count(out.String(), "holdfast demo"))
	require.Equal(t, 2, strings.Count(out.String(), "\x1b[21A\r"), "moves up by as many lines as it has drawn")
}

func trimmed(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
