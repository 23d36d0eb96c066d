//go:build unix

package child

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// crew is the processes that must not outlive the lock: the command's group, and on Linux those
// that left it for another group of the same session, as timeout(1) and the jobs of an interactive
// shell do. They are known by an entry of their environment, the mark.
type crew struct {
	group, session int
	mark           string // "" for none
}

// process is a process that lives, or a zombie.
type process struct {
	pid, parent, group, session int
	name                        string
	zombie                      bool
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

// outlast returns those that still live after a time, or as soon as no process lives that is
// expected to end. To look at all processes is work, so the pauses grow with the time that it took
// so far.
func (c crew) outlast(limit time.Duration, ends func(process) bool) []process {
	const first, longest = 5 * time.Millisecond, 250 * time.Millisecond
	end := time.Now().Add(limit)
	for pause := first; ; pause = min(pause*3/2, longest) {
		left := time.Until(end)
		if left <= 0 {
			return c.living(func(process) bool { return false })
		}
		if living := c.living(ends); !slices.ContainsFunc(living, ends) {
			return living
		}
		time.Sleep(min(pause, left))
	}
}

// survivors returns those that have not ended although they were sent SIGKILL. Those that could be
// sent it have some time to end.
func (c crew) survivors(limit time.Duration) []Survivor {
	if c.group <= 1 {
		return nil
	}
	return survivorsOf(c.outlast(limit, func(p process) bool { return unix.Kill(p.pid, 0) == nil }))
}

// survivorsOf describes processes.
func survivorsOf(all []process) (found []Survivor) {
	for _, p := range all {
		err := unix.Kill(p.pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue // it has ended meanwhile
		}
		found = append(found, Survivor{p.pid, p.name, p.user(), err})
	}
	return found
}
