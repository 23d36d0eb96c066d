//go:build redis

package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestLeaderThatIsTerminatedKeepsNoLock(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "leader")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", output)
	redis := redistest.Start(t)
	leader := exec.CommandContext(t.Context(), program, redis.Addr())
	stdout, err := leader.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, leader.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "leads")
	require.NoError(t, leader.Process.Signal(syscall.SIGTERM))
	require.NoError(t, leader.Wait())
	require.Zero(t, redis.DoInt(t, "EXISTS", "leader"))
}
