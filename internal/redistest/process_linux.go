package redistest

import "syscall"

// DieWithParent has the server killed when the thread that started it ends, at the latest with the
// test binary.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
