package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

// workers counts the processes of this program. Each test has its own copy of it.
func workers(t *testing.T, program string) (count int) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == program {
			count++
		}
	}
	return count
}

// startDemo starts a demo with a program of its own, and returns when it is running.
func startDemo(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), "holdfast")
	require.NoError(t, os.Link(binary, program)) // a file that was just written may be busy
	cmd := exec.CommandContext(t.Context(), program, append([]string{"demo"}, args...)...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	// by then all processes that stay have started
	for handovers := 0; handovers < 3 && lines.Scan(); {
		if strings.Contains(lines.Text(), " let go") {
			handovers++
		}
	}
	require.NoError(t, lines.Err())
	require.Greater(t, workers(t, program), 1+10, "most of the 23 still play")
	return cmd
}

func requireNoWorkers(t *testing.T, program string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return workers(t, program) == 0
	}, 5*time.Second, 10*time.Millisecond)
}

func TestSignalStopsEverything(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		redis := redistest.Start(t)
		cmd := startDemo(t, "--redis", redis.Addr())
		require.NoError(t, cmd.Process.Signal(signal))
		require.Error(t, cmd.Wait())
		require.Equal(t, 130, cmd.ProcessState.ExitCode())
		require.Zero(t, workers(t, cmd.Path))
		require.Empty(t, redis.Keys(t))
	}
}

func TestWorkersDoNotOutliveTheDemo(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t) // it outlives the demo, so no worker fails because of it
	cmd := startDemo(t, "--redis", redis.Addr())
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	requireNoWorkers(t, cmd.Path)
}
