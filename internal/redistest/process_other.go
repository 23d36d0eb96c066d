//go:build !linux

package redistest

import "syscall"

// DieWithParent has no counterpart here: only the clean-up of the test stops its servers.
func DieWithParent() *syscall.SysProcAttr { return nil }
