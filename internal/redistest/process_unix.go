//go:build unix

package redistest

import (
	"errors"
	"os"
	"syscall"
)

// hasRoom reports whether so many bytes are left in a directory.
func hasRoom(dir string, bytes uint64) bool {
	var space syscall.Statfs_t
	return syscall.Statfs(dir, &space) == nil && space.Bavail*uint64(space.Bsize) >= bytes
}

func (p *process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) Resume() error {
	err := p.cmd.Process.Signal(syscall.SIGCONT)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
