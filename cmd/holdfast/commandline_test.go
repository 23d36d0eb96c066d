package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// commands has all commands that users see.
var commands = []string{"demo", "run", "hold", "ls", "inspect", "top", "unlock", "doctor",
	"version", "help", "completion"}

func TestEachCommandHasHelp(t *testing.T) {
	t.Parallel()
	usage := run(t, "--help")
	require.Zero(t, usage.status)
	for _, command := range append([]string{""}, commands...) {
		require.Contains(t, usage.stdout, command)
		o := run(t, strings.Fields(command+" --help")...)
		require.Zero(t, o.status)
		require.NotContains(t, o.stdout, "--sentinel", "holdfast help server has it")
		for line := range strings.Lines(o.stdout) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
		}
		require.Equal(t, o, run(t, strings.Fields("help "+command)...))
	}
	require.Equal(t, 64, run(t, "help", "bogus").status)
}

func TestHelpServerHasTheFlagsOfAllServers(t *testing.T) {
	t.Parallel()
	o := run(t, "help", "server")
	require.Zero(t, o.status)
	for _, flag := range []string{"redis", "sentinel", "user", "password-file", "tls", "cacert",
		"cert", "key", "insecure"} {
		require.Contains(t, o.stdout, "--"+flag)
	}
}

func TestUsageErrorsHaveTheirStatus(t *testing.T) {
	t.Parallel()
	for line, help := range map[string]string{"": "holdfast", "bogus": "holdfast",
		"run --wait 1x job true": "holdfast run", "doctor --bogus": "holdfast doctor",
		"doctor extra": "holdfast doctor", "doctor --user": "holdfast doctor",
		"run": "holdfast run", "run --kind spin job true": "holdfast run",
		"completion tcsh": "holdfast completion", "version extra": "holdfast version"} {
		o := run(t, strings.Fields(line)...)
		require.Equal(t, 64, o.status, line)
		require.Empty(t, o.stdout, line)
		require.Regexp(t, `^holdfast: .*\nRun: `+help+` --help\n$`, o.stderr, line)
	}
	o := run(t, "--redis", "localhost", "ls")
	require.Equal(t, 64, o.status)
	require.Contains(t, o.stderr, "unknown flag --redis; write flags after the command\n")
}

func TestVersionIsACommandAndAFlag(t *testing.T) {
	t.Parallel()
	o := run(t, "version")
	require.Zero(t, o.status)
	require.Regexp(t, `^holdfast \S+ go1\S+ \S+/\S+\n$`, o.stdout)
	require.Equal(t, o, run(t, "--version"))
}

func TestCompletionOfEachShell(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{
		"bash": "complete ",
		"zsh":  "bashcompinit",
		"fish": "complete -f -c holdfast",
	} {
		o := run(t, "completion", shell)
		require.Zero(t, o.status)
		require.Contains(t, o.stdout, "holdfast completion -c "+shell)
		o = run(t, "completion", "-c", shell)
		require.Zero(t, o.status)
		require.Contains(t, o.stdout, want)
		require.Contains(t, o.stdout, binary)
	}
}

// completed returns what the program offers for the last word of a line.
func completed(t *testing.T, line string) []string {
	t.Helper()
	o := runWith(t, []string{"COMP_LINE=" + line})
	require.Zero(t, o.status)
	return strings.Fields(o.stdout)
}

func TestWordsAreCompleted(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"inspect"}, completed(t, "holdfast in"))
	require.ElementsMatch(t, commands, completed(t, "holdfast "))
	require.Contains(t, completed(t, "holdfast doctor --sen"), "--sentinel")
	require.ElementsMatch(t, []string{"bash", "zsh", "fish"}, completed(t, "holdfast completion "))
}

func TestNamesOfLocksAreCompleted(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	const owner = "8743c9c0-0795-4907-87fd-6c719a6b4586:1"
	for _, name := range []string{"order:42", "order:43", "stock", "order*", "order:a b"} {
		redis.Do(t, "HSET", name, owner, "1")
	}
	for line, want := range map[string][]string{
		// No shell would read the others as they are.
		"inspect order:":             {"order:42", "order:43"},
		"unlock --redis=%s order:42": {"order:42"},
		"run -n -r %s s":             {"stock"},
		"run -r %s stock s":          {}, // the command
		"inspect order*":             {},
		"inspect --redis ":           {},
		"inspect -r 127.0.0.1:1 s":   {},
		"inspect --bogus -r":         {"-r"},
	} {
		// A busy machine may take longer than a person is kept waiting.
		require.Eventually(t, func() bool {
			o := runWith(t, []string{"REDIS_URL=redis://" + redis.Addr(),
				"COMP_LINE=holdfast " + strings.ReplaceAll(line, "%s", redis.Addr())})
			require.Equal(t, outcome{stdout: o.stdout}, o, line)
			got := strings.Fields(o.stdout)
			slices.Sort(got)
			return slices.Equal(want, got)
		}, 30*time.Second, time.Millisecond, line)
	}
	// bash passes what is behind the last colon, and replaces that.
	require.Eventually(t, func() bool {
		o := runWith(t, []string{"REDIS_URL=redis://" + redis.Addr(),
			"COMP_LINE=holdfast inspect order:4"}, "holdfast", "4", "inspect")
		got := strings.Fields(o.stdout)
		slices.Sort(got)
		return slices.Equal([]string{"42", "43"}, got)
	}, 30*time.Second, time.Millisecond)
}

func TestBashCompletesWithTheCode(t *testing.T) {
	t.Parallel()
	code := run(t, "completion", "-c", "bash").stdout
	script := code + `COMP_LINE="holdfast in" COMP_POINT=11
command=$(complete -p holdfast | sed 's/.*-C \([^ ]*\) .*/\1/')
export COMP_LINE COMP_POINT
eval "$command holdfast in holdfast"`
	o, err := exec.CommandContext(t.Context(), "bash", "-c", script).Output()
	require.NoError(t, err)
	require.Equal(t, "inspect\n", string(o))
}
