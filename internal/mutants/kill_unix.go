//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// killWhole makes the end of a command's context kill all processes that it has started.
func killWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
