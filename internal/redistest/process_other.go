//go:build !linux

package redistest

import "syscall"

// DieWithParent has no counterpart here: the clean-up of the test is the only
// one to stop its servers.
func DieWithParent() *syscall.SysProcAttr { return nil }
