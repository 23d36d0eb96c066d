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

	"holdfast/internal/faultproxy"
	"holdfast/internal/redistest"
)

// workers counts the processes of this program.
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

func TestSignalStopsEverything(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	distant := faultproxy.Start(t, redis.Addr())
	distant.DelayReplies(10 * time.Millisecond)
	program := filepath.Join(t.TempDir(), "holdfast")
	require.NoError(t, os.Link(binary, program)) // a file that was just written may be busy
	cmd := exec.CommandContext(t.Context(), program, "demo", "--redis", distant.Addr())
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	// by then all processes that stay have started
	for handovers := 0; handovers < 3 && lines.Scan(); {
		if strings.Contains(lines.Text(), " released") {
			handovers++
		}
	}
	require.NoError(t, lines.Err())
	require.Greater(t, workers(t, program), 1+10, "most of the 23 still play")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Zero(t, workers(t, program))
	require.Empty(t, redis.Keys(t))
}
