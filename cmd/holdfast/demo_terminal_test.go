//go:build unix

package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/terminal"
)

func TestDemoShowsLocksOnATerminal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	on, err := terminal.Start(exec.CommandContext(ctx, binary, "demo"), 100, 30)
	require.NoError(t, err)
	t.Cleanup(on.Stop)
	require.NoError(t, on.WaitFor(ctx, "a table below the story", func(screen string) bool {
		_, table, ok := strings.Cut(screen, "\nNAME ")
		return ok && strings.Contains(table, "\nqueue ") && strings.Contains(table, "kate on ") &&
			strings.Contains(screen, " holds")
	}))
	_, err = on.Wait(ctx)
	require.NoError(t, err)
	screen := on.Screen()
	require.NotContains(t, screen, "NAME ", "the table is gone")
	lines := strings.Split(strings.TrimSpace(screen), "\n")
	require.Regexp(t, `^demo: 78 sections, 0 overlaps, `, lines[len(lines)-1])
	require.Contains(t, screen, "holds", "the story stays")
}

// Nobody would read what the terminal answers, so that the shell would get it.
func TestDemoDoesNotAskTheTerminal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	on, err := terminal.Start(exec.CommandContext(ctx, "sh", "-c",
		`"$1" demo; read answer; echo "[$answer]"`, "sh", binary), 100, 30)
	require.NoError(t, err)
	t.Cleanup(on.Stop)
	require.NoError(t, on.WaitForText(ctx, "\ndemo: 78 sections"))
	require.NoError(t, on.Send("typed\r"))
	require.NoError(t, on.WaitForText(ctx, "[typed]"))
}

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
