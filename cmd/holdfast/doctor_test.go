package main

import (
	"bufio"
	"encoding/json"
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
		// Any script is slow on a busy machine.
		redis := redistest.Start(t, redistest.WithArgs(strings.Fields(args)...),
			redistest.WithArgs("--slowlog-log-slower-than", "-1"))
		o := run(t, "doctor", "--redis", redis.Addr())
		require.Equal(t, want, o.status, o.stdout)
		require.Empty(t, o.stderr)
		state := []string{"ok     ", "warning", "error  "}[want]
		require.Regexp(t, `(?m)^`+state+` persistence  \S`, o.stdout)
		require.Regexp(t, `^((ok     |warning|error  ) [a-z-]+ +\S.*\n){20,40}$`, o.stdout)
		require.NotContains(t, o.stdout, "\x1b")
		require.Zero(t, redis.DoInt(t, "DBSIZE"))
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
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.Contains(lines.Text(), " channels ") {
	}
	require.Eventually(t, func() bool {
		return len(redis.DoStrings(t, "KEYS", "redisson_lock_token:*")) > 0
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Zero(t, redis.DoInt(t, "DBSIZE"))
}
