//go:build unix

package runner

import "syscall"

// isHarmless reports whether a signal does not end a process that does not catch it.
func isHarmless(s syscall.Signal) bool {
	return s == syscall.SIGWINCH || s == syscall.SIGCONT || s == syscall.SIGIO
}
