package demo

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// short returns a history with something of everything, in which ada and ben are alone at the
// counter.
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
		{At: 20 * ms, Kind: entered, Lock: "queue", Process: "kate", Owner: "k:1"},
		{At: 100 * ms, Kind: waiting, Lock: "queue", Process: "liam"},
		{At: 110 * ms, Kind: queued, Lock: "queue", Process: "liam"},
		{At: 120 * ms, Kind: waiting, Lock: "queue", Process: "mia"},
		{At: 130 * ms, Kind: queued, Lock: "queue", Process: "mia"},
		{At: 140 * ms, Kind: waiting, Lock: "queue", Process: "olga"},
		{At: 150 * ms, Kind: queued, Lock: "queue", Process: "olga"},
		{At: 160 * ms, Kind: waiting, Lock: "queue", Process: "paul"},
		{At: 170 * ms, Kind: queued, Lock: "queue", Process: "paul"},
		{At: 175 * ms, Kind: waiting, Lock: "redlock", Process: "vera"},
		{At: 177 * ms, Kind: entered, Lock: "redlock", Process: "vera", Owner: "v:1"},
		{At: 180 * ms, Kind: entered, Lock: "readwrite", Process: "quinn", Shared: true},
		{At: 190 * ms, Kind: entered, Lock: "readwrite", Process: "rosa", Shared: true},
		{At: 200 * ms, Kind: waiting, Lock: "readwrite", Process: "wim"},
		{At: 210 * ms, Kind: queued, Lock: "readwrite", Process: "wim"},
		{At: 215 * ms, Kind: waiting, Lock: "redlock", Process: "walt"},
		{At: 217 * ms, Kind: waiting, Lock: "transfer", Process: "zoe"},
		{At: 218 * ms, Kind: entered, Lock: "transfer", Process: "zoe", Owner: "z:1"},
		{At: 220 * ms, Kind: waiting, Lock: "readwrite", Process: "sam"},
		{At: 230 * ms, Kind: waiting, Lock: "readwrite", Process: "tess"},
		{At: 500 * ms, Kind: nested, Lock: "counter", Process: "ada", Count: 2},
		{At: 750 * ms, Kind: died, Lock: "redlock", Process: "node5"},
		{At: 900 * ms, Kind: unnested, Lock: "counter", Process: "ada"},
		{At: 910 * ms, Kind: killed, Lock: "queue", Process: "olga"},
		{At: 920 * ms, Kind: leaving, Lock: "readwrite", Process: "quinn"},
		{At: 930 * ms, Kind: leaving, Lock: "readwrite", Process: "rosa"},
		{At: 932 * ms, Kind: entered, Lock: "readwrite", Process: "wim"},
		{At: 1000 * ms, Kind: leaving, Lock: "counter", Process: "ada", Found: "ada"},
		{At: 1001 * ms, Kind: left, Lock: "counter", Process: "ada"},
		{At: 1002 * ms, Kind: entered, Lock: "counter", Process: "ben", Owner: "b:1"},
		{At: 1400 * ms, Kind: leaving, Lock: "readwrite", Process: "wim"},
		{At: 1402 * ms, Kind: entered, Lock: "readwrite", Process: "sam", Shared: true},
		{At: 1404 * ms, Kind: entered, Lock: "readwrite", Process: "tess", Shared: true},
		{At: 1440 * ms, Kind: gaveUp, Lock: "queue", Process: "mia", Owner: "k:1", TTL: 8580 * ms},
		{At: 1508 * ms, Kind: gaveUp, Lock: "timeout", Process: "jack", Owner: "i:1",
			TTL: 28_498 * ms},
		{At: 2000 * ms, Kind: killed, Lock: "takeover", Process: "gina"},
		{At: 2005 * ms, Kind: ended, Lock: "takeover", Process: "gina"},
		{At: 2100 * ms, Kind: leaving, Lock: "counter", Process: "ben", Found: "ben"},
		{At: 2200 * ms, Kind: leaving, Lock: "queue", Process: "kate"},
		{At: 2202 * ms, Kind: entered, Lock: "queue", Process: "liam"},
		{At: 2500 * ms, Kind: leaving, Lock: "queue", Process: "liam"},
		{At: 2800 * ms, Kind: leaving, Lock: "redlock", Process: "vera", Found: "vera"},
		{At: 2802 * ms, Kind: entered, Lock: "redlock", Process: "walt", Owner: "w:1"},
		{At: 2900 * ms, Kind: died, Lock: "redlock", Process: "node1"},
		{At: 2912 * ms, Kind: entered, Lock: "takeover", Process: "hugo", Owner: "h:1"},
		{At: 3900 * ms, Kind: entered, Lock: "queue", Process: "paul"},
		{At: 4009 * ms, Kind: leaving, Lock: "watchdog", Process: "eve", Found: "eve"},
		{At: 4100 * ms, Kind: failed, Lock: "takeover", Process: "hugo", Error: "no route to host"},
	}
}

func TestPlainLinesTellTheStory(t *testing.T) {
	var out bytes.Buffer
	p := newPlain(&out, "Redis at host:1, 27 processes", scenes(false))
	for _, e := range short() {
		p.show(e)
	}
	require.Equal(t, strings.TrimPrefix(`
holdfast demo: Redis at host:1, 27 processes
  counter   4 processes, 48 sections, never two at a time
  queue     a fair lock: first come, first served; one gives up, one is killed
  readwrite readers together, a writer alone; new readers step back for it
  transfer  a MultiLock of two fair locks, named in opposite orders
  redlock   one lock on 5 servers; 2 of them die, and 3 are a quorum
  watchdog  a lease of 1 s, renewed while its holder lives
  takeover  SIGKILL: nobody renews the lease of 1 s any more
  timeout   a lease of 30 s, and one who waits 1.5 s
  0.002 s  counter   ada   holds; ben waits
  0.004 s  takeover  gina  holds
  0.005 s  takeover  hugo  waits, for up to 10 s
  0.006 s  timeout   iris  holds
  0.008 s  timeout   jack  waits, for up to 1.5 s
  0.009 s  watchdog  eve   holds
  0.020 s  queue     kate  holds
  0.110 s  queue     liam  queues up for up to 20 s: liam
  0.130 s  queue     mia   queues up for up to 1.5 s: liam, mia
  0.150 s  queue     olga  queues up for up to 20 s: liam, mia, olga
  0.170 s  queue     paul  queues up for up to 20 s: liam, mia, olga, paul
  0.177 s  redlock   vera  holds
  0.180 s  readwrite quinn reads
  0.190 s  readwrite rosa  reads with quinn
  0.200 s  readwrite wim   waits, for up to 10 s
  0.210 s  readwrite wim   comes first from now on: new readers step back
  0.218 s  transfer  zoe   holds
  0.220 s  readwrite sam   steps back for wim
  0.230 s  readwrite tess  steps back for wim
  0.500 s  counter   ada   re-enters, level 2
  0.750 s  redlock   node5 dies; 4 of 5 servers are left
  0.910 s  queue     olga  is killed in the queue (SIGKILL); liam, mia, paul wait
  0.920 s  readwrite quinn lets go after 0.74 s
  0.930 s  readwrite rosa  lets go after 0.74 s
  0.932 s  readwrite wim   writes, 2.0 ms after rosa let go; sam, tess wait
  1.002 s  counter   ben   holds, 2.0 ms after ada let go; cleo waits
  1.400 s  readwrite wim   lets go after 0.47 s
  1.402 s  readwrite sam   reads, 2.0 ms after wim let go; tess waits
  1.404 s  readwrite tess  reads with sam, 4.0 ms after wim let go
  1.440 s  queue     mia   gives up after 1.32 s: kate holds it for another 8.58 s
  1.508 s  timeout   jack  gives up after 1.5 s: iris holds it for another 28.5 s
  2.000 s  takeover  gina  is killed (SIGKILL); hugo waits
  2.200 s  queue     kate  lets go after 2.18 s
  2.202 s  queue     liam  holds, 2.0 ms after kate let go; paul waits
  2.500 s  queue     liam  lets go after 0.3 s
  2.800 s  redlock   vera  lets go after 2.62 s, 2 leases of 1 s
  2.802 s  redlock   walt  holds, 2.0 ms after vera let go
  2.900 s  redlock   node1 dies; 3 of 5 servers are left
  2.912 s  takeover  hugo  holds, 0.91 s after gina was killed
  3.900 s  queue     paul  holds, 1.4 s after liam let go, past olga, who is dead
  4.009 s  watchdog  eve   lets go after 4 s, 4 leases of 1 s
  4.100 s  takeover  hugo  fails: no route to host
`, "\n"), out.String())
}

func TestLivePictureShowsQueuedWaitersAndReadersThatStepBack(t *testing.T) {
	for at, want := range map[time.Duration][]string{
		925 * ms: {
			`liam +·+ +no. 1 in the queue`, `mia +·+ +no. 2 in the queue`, `olga .*killed`,
			`paul +·+ +no. 4 in the queue`,
			`quinn .*let go`, `rosa .*reads`, `wim +·+ +waits for readers`, `sam +·+ +steps back`,
			`tess +·+ +steps back`,
		},
		2400 * ms: {`liam .*woken in`, `mia .*held for`, `olga .*killed`,
			`paul +·+ +no. 2 in the queue`},
	} {
		l := newLive(new(bytes.Buffer), "", scenes(false), 80, 99, false)
		for _, e := range short() {
			if e.At <= at {
				l.show(e)
			}
		}
		l.now = at
		for _, want := range want {
			require.Regexp(t, want, trimmed(l.picture(l.scenes)))
		}
	}
}

func TestLivePictureTellsTheStory(t *testing.T) {
	l := newLive(new(bytes.Buffer), "Redis at host:1, 27 processes", scenes(false), 80, 99, false)
	for _, e := range short() {
		l.show(e)
	}
	l.now = 4200 * ms
	require.Equal(t, strings.TrimPrefix(`
holdfast demo  Redis at host:1, 27 processes                              4.2 s

counter   4 processes, 48 sections, never two at a time
  ada   ███▓▓█                                          1/12
  ben   ······██████                                    1/12  woken in 2.0 ms
  cleo  ························
  dan

queue     a fair lock: first come, first served; one gives up, one is killed
  kate  █████████████                                   let go
  liam   ············██                                 woken in 2.0 ms
  mia    ·······✗                                       held for another 8.58 s
  noah
  olga   ····✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌                         killed
  paul   ······················█                        past the dead in 1.4 s

readwrite readers together, a writer alone; new readers step back for it
  quinn  ████                                           let go
  rosa   ████                                           let go
  wim    ····███                                        woken in 2.0 ms
  sam    ·······████████████████                        woken in 2.0 ms
  tess   ·······████████████████                        woken in 4.0 ms
  uma

transfer  a MultiLock of two fair locks, named in opposite orders
  yuri
  zoe    ███████████████████████                        1/4

redlock   one lock on 5 servers; 2 of them die, and 3 are a quorum
  vera   ███████████████                                outlived its lease
  walt   ···············████████                        1/4  woken in 2.0 ms
  xena
  nodes 5555✗444444444444✗333333                        2 of 5 died

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
  █ holds  ▓ re-entered  · waits  ╌ dead, in the way  ✗ killed, or gave up
`, "\n"), trimmed(l.picture(l.scenes)))
}

// The last thing that a column may show is drawn smaller when there is no room.
func TestLongPictureIsDrawnSmaller(t *testing.T) {
	l := newLive(new(bytes.Buffer), "", scenes(false), 80, 99, false)
	l.show(event{At: 0, Kind: entered, Lock: "watchdog", Process: "eve"})
	l.now = 11_999 * ms
	require.Equal(t, strings.Repeat("█", l.columns()), l.timeline("eve"))
	require.Equal(t, "0 s    2 s     4 s     6 s     8 s     10 s", strings.TrimSpace(l.axis()))
}

func TestColoursAddNothingButColours(t *testing.T) {
	picture := func(colours bool) string {
		l := newLive(new(bytes.Buffer), "title", scenes(false), 80, 99, colours)
		for _, e := range short() {
			l.show(e)
		}
		l.now = 4200 * ms
		return strings.Join(l.picture(l.scenes), "\n")
	}
	coloured := picture(true)
	require.Contains(t, coloured, string(green)+"█"+reset)
	require.Equal(t, picture(false),
		regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(coloured, ""))
}

func TestTerminalIsLeftAsItWasFound(t *testing.T) {
	var out bytes.Buffer
	l := newLive(&out, "title", scenes(false), 80, 99, false)
	l.tick(0)
	l.tick(redraw / 2) // too early to redraw
	l.tick(redraw)
	l.close()
	require.True(t, strings.HasPrefix(out.String(), hideCursor+noWrap))
	require.True(t, strings.HasSuffix(out.String(), wrap+showCursor))
	require.Equal(t, 3, strings.Count(out.String(), "holdfast demo"))
	require.Equal(t, 2, strings.Count(out.String(), "\x1b[47A\r"),
		"moves up by the number of lines drawn")
}

func trimmed(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
