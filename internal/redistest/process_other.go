//go:build !linux

package redistest

import "syscall"

// dieWithParent has no counterpart here: the clean-up of the test is the only
// one to stop its servers.
func dieWithParent() *syscall.SysProcAttr { return nil }
