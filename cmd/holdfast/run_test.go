//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// consul lock lost it: hashicorp/consul#947.
func TestRunPassesTheStatusOn(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for script, want := range map[string]int{
		"exit 0":        0,
		"exit 7":        7,
		"exit 255":      255,
		"kill -TERM $$": 143,
		"kill -KILL $$": 137,
		"kill -PIPE $$": 141,
	} {
		o := ranUnder(t, redis, "job", "--", "sh", "-c", script)
		require.Equal(t, outcome{status: want}, o, script)
	}
	requireFree(t, redis)
}

func TestRunHasAStatusForEachReasonNotToRun(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("echo"), 0o600))
	redis.Do(t, "SET", "string", "no lock")
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"job"}, 64, "no command"},
		{[]string{"job", "--"}, 64, "no command"},
		{[]string{}, 64, "expected"},
		{[]string{"--nonsense", "job", "true"}, 64, "unknown flag"},
		{[]string{"--kind", "spin", "job", "true"}, 64, "--kind must be one of"},
		{[]string{"--on-lost", "panic", "job", "true"}, 64, "--on-lost must be one of"},
		{[]string{"--lease", "10ms", "job", "true"}, 64, "--lease must be at least 100ms"},
		{[]string{"--kill-after", "11s", "job", "true"}, 64, "a third of --lease"},
		{[]string{"--kill-after=-1s", "job", "true"}, 64, "a third of --lease"},
		{[]string{"--nonblock", "--wait", "3s", "job", "true"}, 64, "can't be used together"},
		{[]string{"--wait=-3s", "job", "true"}, 64, "negative"},
		{[]string{"--at-least=-1s", "job", "true"}, 64, "--at-least must not be negative"},
		{[]string{"--at-least", "1s", "--quorum", "job", "true"}, 64, "neither with --quorum nor"},
		{[]string{"--at-least", "1s", "--kind", "read", "job", "true"}, 64, "nor with --kind read"},
		{[]string{"--max-runtime=-1s", "job", "true"}, 64, "--max-runtime must not be negative"},
		{[]string{"-E", "256", "job", "true"}, 64, "between 0 and 255"},
		{[]string{"", "true"}, 64, "the name is empty"},
		{[]string{"--fsync-always", "job", "true"}, 64, "only with --quorum"},
		{[]string{"--sync-replicas=-1", "job", "true"}, 64, "a number of replicas or connected"},
		{[]string{"--sync-replicas", "1", "--quorum", "job", "true"}, 64, "not work with --quorum"},
		{[]string{"--quorum", "job", "true"}, 64, "at least 3 --redis"},
		{[]string{"--quorum", "--kind", "fair", "job", "true"}, 64, "--kind lock"},
		{[]string{"job", "--", "no such program"}, 127, "not found"},
		{[]string{"job", "--", filepath.Join(dir, "nothing")}, 127, "no such file"},
		{[]string{"job", "--", dir}, 126, "is a directory"},
		{[]string{"job", "--", plain}, 126, "permission denied"},
		{[]string{"string", "--", "true"}, 74, "WRONGTYPE"},
	} {
		o := ranUnder(t, redis, test.args...)
		require.Equal(t, test.status, o.status, "%v: %s", test.args, o.stderr)
		require.Contains(t, o.stderr, test.says, "%v", test.args)
		require.Empty(t, o.stdout)
	}
	require.Equal(t, []string{"string"}, keys(t, redis))
	o := run(t, "run", "--redis", "127.0.0.1:1", "job", "true")
	require.Equal(t, 74, o.status)
	require.Contains(t, o.stderr, "127.0.0.1:1")
}

// Each connection costs a round trip or two before the command can start or end.
func TestRunNeedsOneConnection(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	received := regexp.MustCompile(`total_connections_received:(\d+)`)
	connections := func() int {
		found := received.FindStringSubmatch(redis.DoString(t, "INFO", "stats"))
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	before := connections()
	require.Equal(t, outcome{}, ranUnder(t, redis, "job", "true"))
	require.Equal(t, before+2, connections(), "one is the test's own")
}

// A file may be executable and yet not be a program: that shows only under the lock.
func TestRunReleasesTheLockOfACommandThatCannotBeExecuted(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("#!/no/such/interpreter\n"), 0o700))
	o := ranUnder(t, redis, "job", program)
	require.Equal(t, 127, o.status)
	require.Contains(t, o.stderr, "cannot start the command: "+program)
	requireFree(t, redis)
}

func TestRunInterpretsAScriptWithoutAnInterpreterAsShellsDo(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("echo \"$1\"; exit 3\n"), 0o700))
	require.Equal(t, outcome{stdout: "a  b\n", status: 3},
		ranUnder(t, redis, "job", script, "a  b"))
}

func TestRunGivesTheCommandItsArgumentsUnchanged(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	show := []string{"sh", "-c", `printf '<%s>' "$@"`, "sh", "-x", "--wait", "9s", "--", "", "a b"}
	for _, flags := range [][]string{
		{"job", "--"}, {"job"}, {"--kind", "fair", "job"}, {"job", "-q", "--"}, {"-q", "--", "job"},
	} {
		require.Equal(t, outcome{stdout: "<-x><--wait><9s><--><><a b>"},
			ranUnder(t, redis, append(flags, show...)...), "%v", flags)
	}
	// Names of files need not be UTF-8.
	require.Equal(t, outcome{stdout: "\x01\x80\xff job\xff"}, ranUnder(t, redis, "job\xff", "--",
		"sh", "-c", `printf %s "$1 $HOLDFAST_LOCK"`, "sh", "\x01\x80\xff"))
	require.Equal(t, outcome{stdout: "a b | c\n"},
		ranUnder(t, redis, "--shell", "job", "--", "echo a", "b '|' c"))
}

func TestRunPassesStandardInputThrough(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	text := strings.Repeat("line\n", 100_000)
	cmd := exec.CommandContext(t.Context(), binary, "run", "--redis", redis.Addr(), "job", "cat")
	cmd.Stdin = strings.NewReader(text)
	o := finish(t, cmd)
	require.Equal(t, outcome{stdout: text}, o)
}

func TestRunTellsTheCommandAboutTheLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	const show = `echo "$HOLDFAST_LOCK $HOLDFAST_OWNER ${HOLDFAST_TOKEN-none} $HOLDFAST_DEADLINE"`
	j := startRun(t, redis.Addr(), append([]string{"--lease", "20s", "job"},
		shell(`{ `+show+`; } >&3; sleep 100`)...)...)
	words := strings.Fields(j.next(t).line)
	require.Equal(t, "job", words[0])
	require.Equal(t, "1", redis.DoMap(t, "HGETALL", "job")[words[1]])
	require.Equal(t, "none", words[2])
	deadline, err := strconv.ParseInt(words[3], 10, 64)
	require.NoError(t, err)
	left := time.Until(time.UnixMilli(deadline))
	require.Greater(t, left, time.Duration(0))
	require.Less(t, left, 20*time.Second)
	for _, token := range []string{"1\n", "2\n"} {
		require.Equal(t, outcome{stdout: token}, ranUnder(t, redis, "--kind", "fenced", "--shell",
			"fenced", "--", "echo $HOLDFAST_TOKEN"))
	}
	// A run inside a run has a lock of its own, and no token of the outer one.
	o := ranUnder(t, redis, "--kind", "fenced", "outer", binary, "run", "--redis", redis.Addr(),
		"inner", "--shell", "--", show)
	require.Regexp(t, `^inner \S+ none \d+\n$`, o.stdout)
}

func TestRunExcludesByTheKindOfTheLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, test := range []struct {
		holds, wants string
		status       int
	}{
		{"lock", "lock", 75}, {"fair", "fair", 75}, {"fenced", "fenced", 75}, {"lock", "fair", 75},
		{"write", "write", 75}, {"write", "read", 75}, {"read", "write", 75}, {"read", "read", 0},
	} {
		name := test.holds + " and " + test.wants
		j := startRun(t, redis.Addr(),
			append([]string{"--kind", test.holds, name}, shell(`echo in >&3; sleep 100`)...)...)
		j.line(t, "in")
		o := ranUnder(t, redis, "--nonblock", "--kind", test.wants, name, "true")
		require.Equal(t, test.status, o.status, name)
		require.Equal(t, test.status != 0, strings.Contains(o.stderr, "held by "), name)
		j.signal(t, syscall.SIGTERM)
		j.dead(t)
		require.Equal(t, 143, j.status(t))
	}
}

func TestRunThatWaitedInVainEndsWithTheStatusThatItWasGiven(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), forEver()...)
	j.line(t, "in")
	// Long enough to connect and ask on a busy machine: otherwise it does not know of a holder.
	o := ranUnder(t, redis, "--wait", "3", "-E", "9", "job", "true")
	require.Equal(t, 9, o.status)
	require.Equal(t, outcome{status: 75}, ranUnder(t, redis, "-n", "-q", "job", "true"))
	require.Equal(t, outcome{status: 0}, ranUnder(t, redis, "-n", "-q", "-E", "0", "job", "false"))
}

func TestRunSaysWhichProcessHasTheLock(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	j := startRun(t, redis.Addr(), forEver()...)
	j.line(t, "in")
	j.introduced(t, redis)
	o := ranUnder(t, redis, "--nonblock", "job", "true")
	require.Equal(t, 75, o.status)
	require.Regexp(t, `^holdfast: lock "job": not acquired: held by run sh on \S+ \(pid `+
		strconv.Itoa(j.cmd.Process.Pid)+`\), \S+ s left\n$`, o.stderr)
	redis.Do(t, "HSET", "stuck", "7c1f9d0e-0000-4000-8000-000000000000:12", "1") // as nobody does
	o = ranUnder(t, redis, "--nonblock", "stuck", "true")
	require.Equal(t, 75, o.status)
	require.Contains(t, o.stderr, `"stuck": not acquired: held by 7c1f9d0e…:12, never ends`+"\n")
}

func TestRunSaysThatItWaits(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	first := startRun(t, redis.Addr(), forEver()...)
	first.line(t, "in")
	second := startRun(t, redis.Addr(), append([]string{"job"}, shell(`echo in >&3; exit 3`)...)...)
	require.Eventually(t, func() bool {
		return strings.Contains(second.stderr.String(), "holdfast: lock \"job\": waiting")
	}, longest, time.Millisecond)
	quiet := startRun(t, redis.Addr(), append([]string{"-q", "job"}, shell(`echo in >&3`)...)...)
	first.signal(t, syscall.SIGTERM)
	second.line(t, "in")
	require.Equal(t, 3, second.status(t))
	require.NotContains(t, second.stderr.String(), "1 waits", "it is the only one")
	require.Regexp(t, `^holdfast: lock "job": waiting.*\nholdfast: lock "job": acquired after .*s\n$`,
		second.stderr.String())
	quiet.line(t, "in")
	require.Zero(t, quiet.status(t))
	require.Empty(t, quiet.stderr.String())
	requireFree(t, redis)
}

func TestRunThatIsInterruptedWhileItWaitsLeavesNothingInRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, kind := range []string{"lock", "fair"} {
		holder := startRun(t, redis.Addr(),
			append([]string{"--kind", kind, "job"}, shell(`echo in >&3; sleep 100`)...)...)
		holder.line(t, "in")
		before := keys(t, redis)
		for signal, want := range map[syscall.Signal]int{
			syscall.SIGINT: 130, syscall.SIGTERM: 143,
		} {
			waiter := startRun(t, redis.Addr(), "--kind", kind, "job", "true")
			require.Eventually(t, func() bool {
				return strings.Contains(waiter.stderr.String(), "lock \"job\": waiting")
			}, longest, time.Millisecond, kind)
			require.Eventually(t, func() bool { return len(keys(t, redis)) > len(before) }, longest,
				time.Millisecond, kind)
			waiter.signal(t, syscall.SIGWINCH) // does not concern it
			waiter.signal(t, signal)
			require.Equal(t, want, waiter.status(t), "%s: %v", kind, waiter.stderr)
			require.ElementsMatch(t, before, keys(t, redis), kind)
		}
		holder.signal(t, syscall.SIGKILL)
		holder.dead(t)
		redis.Do(t, "FLUSHALL")
	}
}

// Whoever says that a loss does not matter wants to know how the command fared. The loss is no
// secret.
func TestRunWithOnLostIgnorePassesTheStatusOnAndSaysThatTheLockWasLost(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for name, test := range map[string]struct{ lease, says string }{
		"noticed while the command runs": {"1s", "the command continues (--on-lost ignore)"},
		"noticed by the release":         {"10m", ""},
	} {
		j := startRun(t, redis.Addr(), append([]string{"-q", "--on-lost", "ignore", "--lease", test.lease,
			"job"}, shell(`trap 'exit 5' USR1; echo in >&3; `+waits)...)...)
		j.line(t, "in")
		redis.Do(t, "DEL", "job")
		require.Eventually(t, func() bool {
			return strings.Contains(j.stderr.String(), test.says)
		}, longest, time.Millisecond, name)
		j.lives(t)
		j.signal(t, syscall.SIGUSR1)
		j.dead(t)
		require.Equal(t, 5, j.status(t), name)
		require.Regexp(t, `lock "job".* lost: .*; the command ended with status 5 `+
			`\(--on-lost ignore\)\n$`, j.stderr.String(), name)
	}
}

func TestRunWithinARunOfTheSameLockIsRefused(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for kinds, want := range map[[2]string]int{
		{"lock", "fair"}: 75, {"write", "read"}: 75, {"read", "write"}: 75, {"read", "read"}: 0,
	} {
		o := ranUnder(t, redis, "--kind", kinds[0], "job", "--",
			binary, "run", "--redis", redis.Addr(), "-w", "5s", "--kind", kinds[1], "job", "true")
		require.Equal(t, want, o.status, "%v: %s", kinds, o.stderr)
		require.Equal(t, want != 0, strings.Contains(o.stderr, "run around this one"), o.stderr)
	}
	o := ranUnder(t, redis, "job", "--", binary, "run", "--redis", redis.Addr(), "another", "true")
	require.Zero(t, o.status, o.stderr)
}
