package redistest

import "syscall"

// dieWithParent has a child killed when the thread that started it ends, at the latest with the
// test binary.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
