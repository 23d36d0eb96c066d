//go:build unix

package runner

import (
	"os"
	"os/signal"
	"syscall"
)

// surviveClosedOutput keeps a message that nobody reads any more from ending this process, which
// would kill the command. The signal is caught and not ignored, as the command would inherit that.
func surviveClosedOutput() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// isHarmless reports whether a signal does not end a process that does not catch it.
func isHarmless(s syscall.Signal) bool {
	return s == syscall.SIGWINCH || s == syscall.SIGCONT || s == syscall.SIGIO
}
