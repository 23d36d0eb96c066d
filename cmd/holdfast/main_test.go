package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// binary is the program as users build it.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "holdfast.exe") // Windows wants the ending, the others do not mind
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	status := m.Run() // no leak check: everything runs in other processes
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// outcome is what a run of the program has shown.
type outcome struct {
	stdout, stderr string
	status         int
}

func (o outcome) lastLine() string {
	lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
	return lines[len(lines)-1]
}

func run(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func TestDemoRunsWithoutRedis(t *testing.T) {
	t.Parallel()
	began := time.Now()
	o := run(t, "demo")
	require.Zero(t, o.status, "%s%s", o.stdout, o.stderr)
	require.Regexp(t, `^demo: 53 sections, 0 overlaps, counter 53, max wake-up .*, takeover .* s$`, o.lastLine())
	require.Empty(t, o.stderr)
	require.Less(t, time.Since(began), 15*time.Second)
}

func TestDemoRunsOnRedisAndLeavesNothingThere(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Do(t, "SET", "counter", "somebody else's")
	o := run(t, "demo", "--plain", "--redis", "redis://"+redis.Addr()+"/0")
	require.Zero(t, o.status, "%s%s", o.stdout, o.stderr)
	require.Contains(t, o.lastLine(), "demo: 53 sections, 0 overlaps, counter 53, ")
	require.Equal(t, []string{"counter"}, redis.DoStrings(t, "KEYS", "*"))
}

func TestDemoWithoutTheLockFails(t *testing.T) {
	t.Parallel()
	o := run(t, "demo", "--break")
	require.Equal(t, 1, o.status)
	require.Regexp(t, `^demo: 53 sections, [1-9]\d* overlaps, counter \d+ instead of 53, `, o.lastLine())
}

func TestUnreachableServerIsOneLine(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:1":                 "cannot reach Redis at 127.0.0.1:1: ",
		"redis://:secret@127.0.0.1:1": "cannot reach Redis at redis://127.0.0.1:1: ",
		"localhost":                   "--redis: want host:port or redis://",
	} {
		o := run(t, "demo", "--redis", address)
		require.Equal(t, 1, o.status)
		require.Empty(t, o.stdout)
		require.Regexp(t, `^holdfast: .*\n$`, o.stderr)
		require.Contains(t, o.stderr, want)
	}
}

func TestHelpIsHelpful(t *testing.T) {
	t.Parallel()
	o := run(t, "--help")
	require.Zero(t, o.status)
	require.Contains(t, o.stdout, "demo")
	require.NotContains(t, o.stdout, "worker")
	o = run(t, "demo", "--help")
	require.Zero(t, o.status)
	for _, word := range []string{"--redis", "--plain", "NO_COLOR", "exit status"} {
		require.Contains(t, strings.ReplaceAll(o.stdout, "\n", " "), word)
	}
	require.NotContains(t, o.stdout, "--break")
}
