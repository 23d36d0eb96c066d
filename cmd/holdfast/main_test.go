package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/status"
	"holdfast/internal/redistest"
)

// binary is the program as users build it.
var binary string

func TestMain(m *testing.M) {
	// go test knows what it has linked, and repeats a result that it has for the same. So the program
	// has to be linked, although it runs elsewhere.
	_ = reflect.ValueOf(main).Pointer()
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "holdfast.exe") // Windows needs the extension
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	catchIgnored()
	status := m.Run() // no leak check: everything runs in other processes
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// catchIgnored catches signals that this process was started to ignore, as by nohup or in the
// background of a shell: programs that it starts would ignore them, too.
func catchIgnored() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// outcome is the result of a run of the program.
type outcome struct {
	stdout, stderr string
	status         int
}

func (o outcome) lastLine() string {
	lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
	return lines[len(lines)-1]
}

// run runs the program to its end.
func run(t *testing.T, args ...string) outcome {
	t.Helper()
	return runWith(t, nil, args...)
}

// runWith is run with additional environment variables.
func runWith(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), env...)
	return finish(t, cmd)
}

// finish runs a command to its end.
func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Each demo has 23 processes with leases of a second, so only one runs at a time.
func TestDemoRunsWithoutRedis(t *testing.T) {
	t.Parallel()
	requireStories(t, func() (string, bool) {
		began := time.Now()
		o := run(t, "demo")
		took := time.Since(began)
		if !succeeded(t, o) {
			return o.stdout, false
		}
		require.Regexp(t,
			`^demo: 78 sections, 0 overlaps, counter 78, max wake-up .*, takeover .* s$`,
			o.lastLine())
		require.Empty(t, o.stderr)
		return o.stdout, took < 15*time.Second // the story of the queue takes 8 s
	})
}

func TestDemoRunsOnRedisAndLeavesNothingThere(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Do(t, "SET", "counter", "somebody else's")
	requireStories(t, func() (string, bool) {
		o := run(t, "demo", "--plain", "--redis", "redis://"+redis.Addr()+"/0")
		require.Equal(t, []string{"counter"}, redis.Keys(t))
		if !succeeded(t, o) {
			return o.stdout, false
		}
		require.Contains(t, o.lastLine(), "demo: 78 sections, 0 overlaps, counter 78, ")
		return o.stdout, true
	})
}

// succeeded reports whether a demo ended without a fault. On a busy machine one of its processes
// may lose a lease of a second. Even then no two may have been in a section.
func succeeded(t *testing.T, o outcome) bool {
	t.Helper()
	if o.status == 0 {
		return true
	}
	require.Contains(t, o.lastLine(), " sections, 0 overlaps, ", "%s%s", o.stdout, o.stderr)
	return false
}

// requireStories requires that a demo succeeds, and that its lines tell of the queue and of the
// readers, in order. On a busy machine a process reports too late and is shown too late, so one run
// in three is enough.
func requireStories(t *testing.T, demo func() (lines string, succeeded bool)) {
	t.Helper()
	var missing string
	for range 3 {
		lines, succeeded := demo()
		missing = untold(lines)
		if succeeded && missing == "" {
			return
		}
		if !succeeded {
			missing = "success"
		}
		t.Logf("not told: %s in\n%s", missing, lines)
	}
	require.Fail(t, "not told: "+missing)
}

// untold returns the first part of the stories that is missing in the lines, or "".
func untold(lines string) string {
	for _, story := range [][]string{{
		`queue +paul +queues up for up to 10 s: liam, .*noah, olga, paul\n`,
		`queue +olga +is killed in the queue \(SIGKILL\)`,
		`queue +liam +holds, .* after kate let go; waiting: noah, paul\n`,
		`queue +noah +holds, .* after liam let go; waiting: paul\n`,
		`queue +noah +queues up for up to 10 s: olga, paul, noah\n`,
		`queue +paul +holds, .* after noah let go, past olga, who is dead; waiting: noah\n`,
		`queue +noah +holds, .* after paul let go\n`,
	}, {
		`queue +mia +queues up for up to 1\.5 s: liam, mia\n`,
		`queue +mia +gives up after 1\.\d+ s: kate holds it for another `,
	}, {
		`readwrite \w+ +reads with (quinn|rosa)\n`,
		`readwrite wim +comes first from now on: new readers step back\n`,
		`readwrite \w+ +steps back for wim\n`,
		`readwrite wim +writes, .* after \w+ let go; waiting: sam, tess\n`,
		`readwrite uma +waits, for up to 10 s\n`,
		`readwrite wim +lets go`,
		`readwrite \w+ +reads with \w+, \w+, .* after wim let go\n`,
	}, {
		`redlock +vera +holds\n`,
		`redlock +node5 dies; the others are a quorum\n`,
		`redlock +vera +lets go after .*, [2-9] leases of 1 s\n`,
		`redlock +(walt|xena) +holds, .* after vera let go`,
		`redlock +node1 dies; the others are a quorum\n`,
		`redlock +(walt|xena) +holds`,
	}, {
		`watchdog +jack +gives up after 1\.\d+ s: gina holds it for another 0\.\d+ s\n`,
		`watchdog +gina +is killed \(SIGKILL\) after .*, [3-9] leases of 1 s; waiting: hugo\n`,
		`watchdog +hugo +holds, .* s after gina was killed\n`,
	}, {
		`counter +(ada|ben|cleo|dan) +re-enters, level 2\n`,
	}, {
		`transfer +(yuri|zoe) +holds, .* after (yuri|zoe) let go`,
	}} {
		rest := lines
		for _, want := range story {
			at := regexp.MustCompile(want).FindStringIndex(rest)
			if at == nil {
				return want
			}
			rest = rest[at[1]:]
		}
	}
	return ""
}

func TestDemoWithoutTheLockFails(t *testing.T) {
	t.Parallel()
	o := run(t, "demo", "--break")
	require.Equal(t, 1, o.status)
	verdict := regexp.MustCompile(
		`^demo: (\d+) sections, [1-9]\d* overlaps, counter (\d+) instead of (\d+), `).
		FindStringSubmatch(o.lastLine())
	require.NotEmpty(t, verdict, o.stdout)
	require.Equal(t, verdict[1], verdict[3])
	if !strings.Contains(o.stdout, "fault: the scenes were stopped") { // the machine stood still
		require.Equal(t, "78", verdict[1], o.stdout)
	}
}

func TestUnreachableServerIsOneLine(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct {
		text   string
		status int
	}{
		"127.0.0.1:1":                 {" Redis at 127.0.0.1:1: ", status.Server},
		"redis://127.0.0.1:1":         {" Redis at 127.0.0.1:1: ", status.Server},
		"redis://:secret@127.0.0.1:1": {"--redis: a password on the command line", status.Usage},
		"localhost":                   {"--redis: want host:port", status.Usage},
	} {
		o := run(t, "demo", "--redis", address)
		require.Equal(t, want.status, o.status)
		require.Empty(t, o.stdout)
		require.Regexp(t, `^holdfast: .*\n$`, o.stderr)
		require.Contains(t, o.stderr, want.text)
		require.NotContains(t, o.stderr, "secret")
	}
}

func TestHelpShowsTheUsage(t *testing.T) {
	t.Parallel()
	o := run(t, "--help")
	require.Zero(t, o.status)
	require.Contains(t, o.stdout, "demo")
	require.NotContains(t, o.stdout, "worker")
	o = run(t, "demo", "--help")
	require.Zero(t, o.status)
	for _, word := range []string{"--redis", "--plain", "exit status"} {
		require.Contains(t, strings.ReplaceAll(o.stdout, "\n", " "), word)
	}
	require.NotContains(t, o.stdout, "--break")
}
