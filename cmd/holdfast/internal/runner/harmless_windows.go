package runner

import "syscall"

func surviveClosedOutput() {}

// isHarmless reports whether a signal does not end a process that does not catch it.
func isHarmless(syscall.Signal) bool { return false }
