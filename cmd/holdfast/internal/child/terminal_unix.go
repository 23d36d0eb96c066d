//go:build unix

package child

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is the controlling terminal of this process and of the command. One process group, the
// foreground, may read from it, and gets the signals of its keys.
type terminal struct {
	file  *os.File
	own   int         // the group of this process
	group int         // that of the command
	modes *term.State // as they were
	given bool        // the command had the foreground
}

// openTerminal returns the terminal; nil if there is none. The command gets the foreground at once
// if it is alone there: in a pipeline others may need it, so it must ask, by reading.
func openTerminal(group int) *terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	t := &terminal{file: file, own: unix.Getpgrp(), group: group}
	t.modes, _ = term.GetState(int(file.Fd()))
	signal.Ignore(unix.SIGTTOU) // a group in the background may then take the foreground
	alone := term.IsTerminal(0) && term.IsTerminal(1)
	if alone && t.foreground() == t.own {
		t.give()
	}
	return t
}

// foreground returns the group that has the foreground.
func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// give makes the command's group the foreground.
func (t *terminal) give() {
	t.given = true
	_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, t.group)
}

// take makes the own group the foreground, if the command's is.
func (t *terminal) take() {
	if t.foreground() == t.group {
		_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, t.own)
	}
}

// end takes the terminal back for good. A command that was killed could not restore its modes.
func (t *terminal) end(killed bool) {
	had := t.foreground() == t.group
	t.take()
	if had && killed && t.modes != nil {
		_ = term.Restore(int(t.file.Fd()), t.modes)
	}
	t.file.Close()
}
