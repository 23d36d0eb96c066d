//go:build !linux

package redistest

import "syscall"

// dieWithParent has no counterpart here: only the clean-up of the test stops its servers.
func dieWithParent() *syscall.SysProcAttr { return nil }
