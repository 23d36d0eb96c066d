//go:build unix

package child

import "syscall"

// shellStatus returns a status as shells have it.
func shellStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
