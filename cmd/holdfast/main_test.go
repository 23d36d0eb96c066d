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
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
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

// hesitates matches what a run says if it got a lock only after 300 ms, although nobody else had
// it: the machine was busy.
var hesitates = regexp.MustCompile(`(?m)^holdfast: lock ".*": (waiting|acquired after .*)\n`)

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
	said := hesitates.ReplaceAllString(stderr.String(), "")
	return outcome{stdout.String(), said, cmd.ProcessState.ExitCode()}
}

// stories has a few lines of each scene of the demo, in their order.
var stories = []*regexp.Regexp{
	regexp.MustCompile(`(?s)queue +olga +is killed in the queue \(SIGKILL\)` +
		`.*queue +noah +queues up for up to 10 s: olga, paul, noah\n` +
		`.*queue +paul +holds, .* after noah released, past olga, who is dead; waiting: noah\n`),
	regexp.MustCompile(`queue +mia +gives up after 1\.\d+ s: kate holds it for another `),
	regexp.MustCompile(`(?s)readwrite wim +comes first from now on: new readers step back\n` +
		`.*readwrite wim +writes, .* after \w+ released; waiting: sam, tess\n`),
	regexp.MustCompile(`(?s)redlock +node5 dies; the others are a quorum\n` +
		`.*redlock +vera +lets go after .*, [2-9] leases of 1 s\n` +
		`.*redlock +(walt|xena) +holds, .* after vera released`),
	regexp.MustCompile(`(?s)watchdog +gina +is killed \(SIGKILL\) after .*, [3-9] leases of 1 s; ` +
		`waiting: hugo\n.*watchdog +hugo +holds, .* s after gina was killed\n`),
	regexp.MustCompile(`(?s)leader +alma +is killed \(SIGKILL\) after .*; waiting: bert\n` +
		`.*leader +bert +leads, .* s after alma was killed\n` +
		`.*leader +cora +leads, .* after bert released\n`),
	regexp.MustCompile(`counter +(ada|ben|cleo|dan) +acquires it again \(nested\)\n`),
	regexp.MustCompile(`(?s)once +bea +runs the function\n.*once +cal +gets the result of bea\n` +
		`.*once +dot +gets the result of bea\n`),
	regexp.MustCompile(`transfer +(yuri|zoe) +holds, .* after (yuri|zoe) released`),
}

// On a busy machine one of the processes may lose a lease of a second, and reports may come too
// late, so one run in three is enough. But never may two have been in a section.
func TestDemoRunsWithoutRedis(t *testing.T) {
	t.Parallel()
	var missing []*regexp.Regexp
	for range 3 {
		o := run(t, "demo")
		require.Contains(t, o.stdout, " holds, 0 overlaps, ", o.stderr)
		missing = slices.DeleteFunc(slices.Clone(stories), func(story *regexp.Regexp) bool {
			return story.MatchString(o.stdout)
		})
		if o.status == 0 && len(missing) == 0 {
			require.Regexp(t,
				`\ndemo: 82 holds, 0 overlaps, counter 82, max wake-up .*, takeover .* s\n$`, o.stdout)
			require.Empty(t, o.stderr)
			return
		}
		t.Logf("status %d; not told: %v in\n%s", o.status, missing, o.stdout)
	}
	require.Fail(t, "no demo succeeded")
}

func TestDemoWithoutTheLockFails(t *testing.T) {
	t.Parallel()
	o := run(t, "demo", "--break")
	require.Equal(t, 1, o.status)
	verdict := regexp.MustCompile(
		`\ndemo: (\d+) holds, [1-9]\d* overlaps, counter (\d+) instead of (\d+), .*\n$`).
		FindStringSubmatch(o.stdout)
	require.NotEmpty(t, verdict, o.stdout)
	require.Equal(t, verdict[1], verdict[3])
	if !strings.Contains(o.stdout, "fault: the scenes were stopped") { // the machine stood still
		require.Equal(t, "82", verdict[1], o.stdout)
	}
}
