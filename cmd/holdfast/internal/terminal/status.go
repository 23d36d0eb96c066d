//go:build unix

package terminal

import (
	"os/exec"
	"syscall"
)

// exitStatus returns the exit status of a command that has ended, as a shell says it.
func exitStatus(cmd *exec.Cmd) int {
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
