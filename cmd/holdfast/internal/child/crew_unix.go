//go:build unix

package child

import (
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// crew is the processes that must not outlive the lock: the command's group, and on Linux those
// that left it for another group of the same session, as timeout(1) and the jobs of an interactive
// shell do. They are known by an entry of their environment, the mark.
type crew struct {
	group, session int
	mark           string // "" for none
}

// mark returns the entry of an environment that no other command has.
func mark(env []string) string {
	i := slices.IndexFunc(env, func(entry string) bool {
		return strings.HasPrefix(entry, OwnerVariable+"=")
	})
	if i < 0 {
		return ""
	}
	return env[i]
}

// send sends all a signal.
func (c crew) send(s syscall.Signal) {
	if c.group <= 1 {
		return
	}
	_ = unix.Kill(-c.group, s) // it may have ended
	passes := 1
	if s == unix.SIGKILL {
		passes = 100 // the kernel reaches a group at once, but these may fork meanwhile
	}
	for range passes {
		strays := c.strays()
		if len(strays) == 0 {
			return
		}
		for _, p := range strays {
			_ = p.Signal(s)
			_ = p.Release()
		}
	}
}

// lives reports whether somebody does.
func (c crew) lives() bool { return inhabited(c.group) || len(c.strays()) > 0 }
