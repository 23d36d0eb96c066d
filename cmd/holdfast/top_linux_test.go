package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/redistest"
)

func TestTopEndsWithItsTerminalAlsoWhereSIGHUPIsIgnored(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	s := sit(t, redistest.Start(t), "sh", "-c",
		`trap "" HUP; sh -c 'echo $$ > "$0"; exec holdfast top --interval 100ms' "$0"; :`, file)
	s.sees(t, `^holdfast top`)
	pid, err := os.ReadFile(file)
	require.NoError(t, err)
	s.Stop() // kills the outer shell only
	require.Eventually(t, func() bool {
		line, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/cmdline")
		return err != nil || len(line) == 0 // gone, or waits to be reaped
	}, longest, 10*time.Millisecond)
}
