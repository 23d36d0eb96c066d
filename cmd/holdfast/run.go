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
	Wait      *time.Duration `short:"w" xor:"wait" placeholder:"30s" help:"Give up after that. The default is to wait for ever."`
	Nonblock  bool           `short:"n" xor:"wait" help:"Do not wait."`
	Lease     time.Duration  `default:"30s" help:"For how long a dead machine keeps the lock; it is renewed while the command runs."`
	KillAfter *time.Duration `placeholder:"5s" help:"Time between SIGTERM and SIGKILL, at most a third of the lease."`
	OnLost    string         `enum:"term,ignore" default:"term" help:"term ends the command when the lock is lost; ignore lets it run."`
	Conflict  int            `short:"E" name:"conflict-exit-code" default:"75" placeholder:"CODE" help:"Exit status if another has the lock."`
	Shell     bool           `help:"Run the command by sh -c."`
	Quorum    bool           `help:"One lock over all --redis (RedLock): a minority may fail."`
	Quiet     bool           `short:"q" help:"Print only what went wrong."`
	connect.Flags

	Name    string   `arg:"" help:"Name of the lock."`
	Command []string `arg:"" optional:"" passthrough:"partial" help:"The command, and its arguments."`
}

// Help returns the text that "holdfast run --help" shows.
func (runCommand) Help() string {
	return `Example: a job that cron starts on two machines, and one of them runs:

  holdfast run --nonblock nightly -- ./job

Exit status: the command's, 128+n for its signal n; 75 another has the lock; 74 server trouble; 76
the lock was lost; 64 usage; 126, 127 as shells. The command gets HOLDFAST_LOCK, HOLDFAST_OWNER,
HOLDFAST_TOKEN (fenced), HOLDFAST_DEADLINE (the first one, epoch ms). See docs/operations.md.`
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
		shell := []string{"/bin/sh", "-c"}
		if runtime.GOOS == "windows" {
			shell = []string{"cmd", "/C"}
		}
		o.Args = append(shell, strings.Join(o.Args, " "))
	}
	return runner.Run(o)
}

// guardCommand is "holdfast guard": a process of run, see package child.
type guardCommand struct{}

// Run does what it reads from standard input.
func (guardCommand) Run() error {
	child.Guard(os.Stdin, os.Stdout)
	return nil
}

// startCommand is "holdfast start": a process of run, which becomes the command.
type startCommand struct {
	Command []string `arg:"" passthrough:""`
}

// Run returns only with an error.
func (c startCommand) Run() error {
	code, err := child.Become(c.Command[1:]) // after --
	return status.New(code, fmt.Errorf("cannot run the command: %w", err))
}
