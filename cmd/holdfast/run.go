package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"holdfast/cmd/holdfast/internal/child"
	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/runner"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/rlock"
)

// runCommand is "holdfast run".
type runCommand struct {
	Kind      string         `enum:"lock,fair,read,write,fenced" default:"lock" help:"lock, fair, read, write or fenced."`
	Wait      *time.Duration `short:"w" xor:"wait" placeholder:"30s" help:"Give up connecting and waiting after that."`
	Nonblock  bool           `short:"n" xor:"wait" help:"Do not wait."`
	Lease     time.Duration  `default:"30s" help:"A dead machine keeps the lock that long."`
	KillAfter *time.Duration `placeholder:"5s" help:"From SIGTERM to SIGKILL; up to lease/3."`
	OnLost    string         `enum:"term,ignore" default:"term" help:"When the lock is lost: term or ignore."`
	Conflict  int            `short:"E" name:"conflict-exit-code" default:"75" placeholder:"N" help:"Exit status if another has it."`
	Shell     bool           `help:"Run the command by sh -c."`
	Quorum    bool           `help:"One lock over all --redis (RedLock)."`
	Quiet     bool           `short:"q" help:"Say nothing of waits, or if another has it."`
	connect.Flags

	Name    string   `arg:"" help:"The lock."`
	Command []string `arg:"" optional:"" passthrough:"partial" help:"The command, and its arguments."`
}

// Help returns the text that "holdfast run --help" shows.
func (runCommand) Help() string {
	return `Example, for cron on two machines:  holdfast run -n -q -E 0 nightly -- ./job

Exit status: the command's, 128+n for its signal n; 75 another has the lock, 74 server trouble, 76
lock lost and not ignored, 64 usage, 126 and 127 as shells. The command gets HOLDFAST_LOCK, _OWNER,
_TOKEN (if fenced) and _DEADLINE (epoch ms).`
}

// Run runs the command under the lock. It handles signals itself.
func (c runCommand) Run() error {
	o := runner.Options{Flags: c.Flags, Name: c.Name, Kind: runner.Kind(c.Kind), Quorum: c.Quorum,
		Args: c.Command, Wait: rlock.Forever, Lease: c.Lease, KillAfter: c.KillAfter,
		Ignore: c.OnLost == "ignore", Conflict: c.Conflict, Quiet: c.Quiet}
	switch {
	case c.Nonblock:
		o.Wait = rlock.NoWait
	case c.Wait != nil:
		o.Wait = *c.Wait
	}
	if len(o.Args) > 0 && o.Args[0] == "--" {
		o.Args = o.Args[1:]
	}
	if c.Shell && len(o.Args) > 0 {
		script := strings.Join(o.Args, " ")
		o.Args = []string{"/bin/sh", "-c", script}
		if runtime.GOOS == "windows" {
			o.Args = []string{"cmd", "/C", script}
		}
	}
	return runner.Run(o)
}

// guardCommand is "holdfast guard": a process of run, see package child.
type guardCommand struct{}

// Run does what it reads from standard input.
func (guardCommand) Run() error { return child.Guard(os.Stdin, os.Stdout) }

// startCommand is "holdfast start": a process of run, which becomes the command.
type startCommand struct {
	Command []string `arg:"" passthrough:""`
}

// Run returns only with an error.
func (c startCommand) Run() error {
	code, err := child.Become(c.Command[1:]) // after --
	return status.New(code, fmt.Errorf("cannot run the command: %w", err))
}
