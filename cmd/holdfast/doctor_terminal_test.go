//go:build unix

package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/cmd/holdfast/internal/terminal"
	"holdfast/internal/redistest"
)

func TestDoctorHasColoursOnATerminal(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for variable, coloured := range map[string]bool{"": true, "NO_COLOR=1": false} {
		command := exec.Command("sh", "-c", variable+` exec "$0" doctor -r "$1"`, binary, redis.Addr())
		screen, err := terminal.Start(command, 300, 50)
		require.NoError(t, err)
		t.Cleanup(screen.Stop)
		status, err := screen.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, status)
		require.Contains(t, screen.Screen(), "ok      version")
		require.Equal(t, coloured, screen.Emulator().CellAt(0, 0).Style.Fg != nil)
		require.Nil(t, screen.Emulator().CellAt(8, 0).Style.Fg)
	}
}
