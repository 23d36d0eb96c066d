package redistest

import (
	"os/exec"
	"runtime"
)

// StartChild starts a program that ends with this process at the latest, on Linux. wait must call
// cmd.Wait; once it has returned, ended is closed.
func StartChild(cmd *exec.Cmd, wait func()) (ended <-chan struct{}, err error) {
	cmd.SysProcAttr = dieWithParent()
	started, waited := make(chan error, 1), make(chan struct{})
	go func() {
		// Linux sends the death signal when the thread that forked ends, which may be long before
		// its process does. This goroutine keeps the thread as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(waited)
		err := cmd.Start()
		started <- err
		if err == nil {
			wait()
		}
	}()
	return waited, <-started
}
