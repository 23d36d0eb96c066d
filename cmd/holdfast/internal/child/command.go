package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"holdfast/cmd/holdfast/internal/status"
)

// OwnerVariable is the variable that tells the command's processes from others. Its value must be
// used once only.
const OwnerVariable = "HOLDFAST_OWNER"

// Command is a command to run.
type Command struct {
	Args      []string         // the program, and its arguments
	Env       []string         // the whole environment
	Signals   <-chan os.Signal // those to pass on: of Forwarded
	Deadline  time.Time        // the first one, see Until; zero for none
	KillAfter time.Duration    // the time between SIGTERM and SIGKILL
	Reserve   time.Duration    // the time from SIGKILL to the deadline: a busy machine is late
}

// Event is something that happened to the command.
type Event int

// The events.
const (
	Terminated Event = iota // it was sent SIGTERM, because its deadline came near, or by End
	Killed                  // its group was sent SIGKILL
	LeftBehind              // it has ended, but descendants of it had not, and are ended
	Abandoned               // it has ended, but descendants of it cannot be ended
)

// Report is an event, and the processes that live on after Killed and Abandoned.
type Report struct {
	Event     Event
	Survivors []Survivor
}

// Survivor is a process that should have ended and has not.
type Survivor struct {
	PID     int
	Name    string
	User    int
	Refused error // why it may not be killed; nil if it was sent SIGKILL
}

// String returns what a person needs to find the process.
func (s Survivor) String() string {
	return fmt.Sprintf("pid %d (%s, user %d)", s.PID, s.Name, s.User)
}

// Look returns the file of a program, or an error with the exit status that shells have for it.
func Look(program string) (file string, code int, err error) {
	file, err = exec.LookPath(program)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot): // as shells do
		return file, 0, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", status.NotFound, err
	}
	return "", status.NotExecutable, err
}

// ChangesUser reports whether a program runs as another user than this process, as sudo does, so
// that this process may not send it signals. It cannot tell of programs that start such a program.
func ChangesUser(program string) bool {
	file, _, err := Look(program)
	if err != nil || os.Geteuid() <= 0 { // root may send signals to all; Windows has no such users
		return false
	}
	info, err := os.Stat(file)
	return err == nil && info.Mode()&os.ModeSetuid != 0
}
