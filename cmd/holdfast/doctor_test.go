package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestDoctorExitsWithTheWorstState(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{
		"--appendonly yes --appendfsync always":   0,
		"--appendonly yes --appendfsync everysec": 1,
		"--appendonly no":                         2,
	} {
		// Any script is slow on a busy machine, and any round trip.
		redis := redistest.Start(t, redistest.WithArgs(strings.Fields(args)...),
			redistest.WithArgs("--slowlog-log-slower-than", "-1"))
		o := run(t, "doctor", "--redis", redis.Addr(), "--ignore", "round-trip")
		require.Equal(t, want, o.status, o.stdout)
		require.Empty(t, o.stderr)
		state := []string{"ok     ", "warning", "error  "}[want]
		require.Regexp(t, `(?m)^`+state+` persistence  \S`, o.stdout)
		require.Regexp(t, `^((ok     |warning|error  ) [a-z-]+ +\S.*\n){20,40}$`, o.stdout)
		require.Regexp(t, `^`+state+` summary      \S`, o.stdout)
		require.NotContains(t, o.stdout, "\x1b")
		require.Empty(t, redis.Keys(t))
	}
}

func TestDoctorPrintsJSON(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	o := run(t, "doctor", "--json", "--redis", redis.Addr())
	require.Equal(t, 2, o.status)
	states := map[string]string{}
	for line := range strings.Lines(o.stdout) {
		var f struct{ State, Check, Text, Advice string }
		require.NoError(t, json.Unmarshal([]byte(line), &f), line)
		require.NotEmpty(t, f.Text)
		require.Equal(t, f.State != "ok", f.Advice != "", line)
		states[f.Check] = f.State
	}
	require.Equal(t, "ok", states["eviction"])
	require.Equal(t, "error", states["persistence"])
	require.Equal(t, "ok", states["hand-over"])
}

func TestDoctorExaminesAClusterAndSentinels(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t, 2)
	o := run(t, "doctor", "-r", nodes.Nodes[0].Addr(), "-r", nodes.Nodes[1].Addr())
	require.Equal(t, 2, o.status)
	require.Contains(t, o.stdout, "SPUBLISH reaches SSUBSCRIBE")
	lonely := []string{nodes.Nodes[0].Addr(), nodes.Nodes[1].Addr()}
	slices.Sort(lonely)
	require.Equal(t, 1, strings.Count(o.stdout, "no replica of"), "all nodes say the same")
	require.Contains(t, o.stdout, " cluster      no replica of "+strings.Join(lonely, ", "))

	group := redistest.StartSentinel(t)
	o = run(t, "doctor", "-r", group.Watcher.Addr(), "--sentinel", "group")
	require.Equal(t, 2, o.status, o.stderr)
	require.Contains(t, o.stdout, "1, none lags")
}

// A user without channels waits for the end of a lease, in which the program is interrupted.
func TestInterruptedDoctorLeavesNothing(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithUser("app", "secret", "~*", "+@all", "resetchannels"))
	cmd := exec.CommandContext(t.Context(), binary, "doctor", "--user", "app", "-r", redis.Addr())
	cmd.Env = append(os.Environ(), "REDISCLI_AUTH=secret")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		return len(redis.DoStrings(t, "KEYS", "redisson_lock_token:*")) > 0
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	text, err := io.ReadAll(stdout)
	require.NoError(t, err)
	require.Contains(t, string(text), " channels ", "what it found before")
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Empty(t, redis.Keys(t))
}

func TestDoctorSumsUpWhatThisUserMayNotAsk(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithUser("app", "secret", "~*", "&*", "+@all", "-info",
		"-config", "-scan"))
	app := func(args ...string) outcome {
		return runWith(t, []string{"REDISCLI_AUTH=secret"},
			append([]string{"doctor", "--user", "app", "-r", redis.Addr()}, args...)...)
	}
	o := app()
	require.Equal(t, 1, o.status, o.stdout)
	require.Regexp(t, `^warning summary      .*failed checks: 12 \(version, service, `, o.stdout)
	require.Regexp(t, `(?m)^warning rights       12 checks failed, because this user lacks `+
		`permissions \(version, .*, leases\); grant \+info \S*config\S* \+scan to this user, or check `,
		o.stdout)
	require.Equal(t, 1, strings.Count(o.stdout, "this user lacks"))
	require.Contains(t, app("--json").stdout, "maxmemory-policy is noeviction, or grant +info")

	o = app("--kind", "fair", "--kind", "read", "--ignore", "read", "--ignore", "memory,leases")
	require.Regexp(t, `(?m)^ok      fair `, o.stdout)
	require.Contains(t, o.stdout, " 10 checks failed")
	for _, check := range []string{"lock", "fenced", "read", "write", "hand-over", "memory",
		"leases"} {
		require.NotRegexp(t, `(?m)^\w+ +`+check+` `, o.stdout)
	}
	require.Regexp(t, `(?m)^ok      hand-over `, app("--kind", "fenced").stdout)
	o = app("--ignore", "luck")
	require.Equal(t, 64, o.status)
	require.Contains(t, o.stderr, `there is no check "luck"; the checks are node, version, `)
	require.Equal(t, 64, app("--kind", "spin").status)
}

func TestDoctorWithoutTheBadChecksIsContent(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.WithArgs("--slowlog-log-slower-than", "-1"))
	o := run(t, "doctor", "-r", redis.Addr(), "--ignore", "persistence", "--ignore", "round-trip")
	require.Zero(t, o.status, o.stdout)
	require.Regexp(t, `^ok      summary      all \d\d checks passed\n`, o.stdout)
}
