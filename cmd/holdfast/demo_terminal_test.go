//go:build unix

package main

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/terminal"
)

func TestInterruptedDemoLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	on, err := terminal.Start(exec.CommandContext(ctx, binary, "demo"), 100, 30)
	require.NoError(t, err)
	t.Cleanup(on.Stop)
	require.NoError(t, on.WaitForText(ctx, "\nNAME "))
	require.NoError(t, on.Send("\x03"))
	got, err := on.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 130, got)
	require.NotContains(t, on.Screen(), "NAME ")
	require.Contains(t, on.Screen(), "holdfast: interrupted")
}
