package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/runner"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/rlock"
)

// lockFlags are the flags of a lock that is held for a command, or for other processes.
type lockFlags struct {
	Kind     string        `enum:"lock,fair,read,write,fenced" default:"lock" placeholder:"KIND" help:"Kind of lock: lock (default), fair, read, write, or fenced."`
	Lease    time.Duration `default:"30s" placeholder:"DURATION" help:"Lease of the lock (default 30s). If this machine dies, the lock stays taken for this long."`
	Quorum   bool          `help:"Lock a majority of independent servers (RedLock). Give --redis once for each server."`
	Replicas replicas      `name:"sync-replicas" placeholder:"N" help:"Acquire the lock only if N replicas have it. The value connected requires one replica while a replica is connected."`
	Fsync    bool          `name:"fsync-always" help:"With --quorum: all servers run with appendfsync always, so a restarted server counts at once."`
	Metrics  string        `name:"metrics-file" placeholder:"FILE" help:"Write metrics to this file, for the textfile collector of node_exporter."`
	Log      string        `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Print messages as text (default), or as json with one object per line."`
}

// options returns what the flags say.
func (f lockFlags) options() runner.Options {
	return runner.Options{Kind: runner.Kind(f.Kind), Lease: f.Lease, Quorum: f.Quorum,
		SyncReplicas: int(f.Replicas), FsyncAlways: f.Fsync, MetricsFile: f.Metrics,
		JSON: f.Log == "json"}
}

// runCommand is "holdfast run".
type runCommand struct {
	Wait       *time.Duration `short:"w" xor:"wait" placeholder:"DURATION" help:"Give up after this long, connecting included. Default: wait forever."`
	Nonblock   bool           `short:"n" xor:"wait" help:"Do not wait for the lock."`
	AtLeast    time.Duration  `placeholder:"DURATION" help:"Keep the lock taken for at least this long after its acquisition, even if the command ends or fails earlier."`
	MaxRuntime time.Duration  `placeholder:"DURATION" help:"End the command with SIGTERM after this long, and with SIGKILL after --kill-after."`
	KillAfter  *time.Duration `placeholder:"DURATION" help:"Time between SIGTERM and SIGKILL when the lock is about to be lost, or at --max-runtime. At most a third of --lease. Default: 5s, or a third of --lease if that is less."`
	OnLost     string         `enum:"term,ignore" default:"term" placeholder:"ACTION" help:"What to do if the lock is lost: term (default) ends the command, ignore lets it run."`
	Conflict   int            `short:"E" name:"conflict-exit-code" default:"75" placeholder:"N" help:"Exit status if someone else holds the lock (default 75)."`
	Script     *string        `short:"c" name:"command" xor:"script" placeholder:"COMMAND" help:"Run this command with sh -c, instead of a command after NAME."`
	Shell      bool           `xor:"script" help:"Run the command after NAME with sh -c."`
	Label      string         `placeholder:"TEXT" help:"What others see as the holder of the lock. Default: run and the name of the command."`
	Quiet      bool           `short:"q" help:"Do not print messages about waiting or about the current holder."`
	lockFlags
	connect.Flags

	Name    string   `arg:"" predictor:"lock" help:"Name of the lock."`
	Command []string `arg:"" optional:"" passthrough:"partial" help:"Command to run, with its arguments."`
}

// Help returns the text that "holdfast run --help" shows.
func (runCommand) Help() string {
	return `Waits for the lock, starts the command, renews the lock while the command runs,
and releases the lock afterwards. If the lock is lost, the command is ended.

For a cron job on several machines:

  holdfast run -n -q -E 0 nightly -- ./job

The exit status is that of the command, or 128+n if signal n ended the command.
Otherwise:

  64        The command line is wrong.
  74        Redis did not reply, or rejected a command.
  75        Someone else holds the lock. -E sets another status.
  76        The lock was lost while the command ran.
  124       --max-runtime ended the command.
  126, 127  The command cannot be started, or does not exist.

The command has these environment variables:

  HOLDFAST_LOCK      The name of the lock.
  HOLDFAST_OWNER     The owner, as unlock --owner takes it.
  HOLDFAST_TOKEN     The fencing token, with --kind fenced.
  HOLDFAST_DEADLINE  The end of the first lease, in milliseconds since 1970.`
}

// Run runs the command under the lock. It handles signals itself.
func (c runCommand) Run() error {
	o := c.options()
	o.Flags, o.Name, o.Args, o.Wait = c.Flags, c.Name, c.Command, rlock.Forever
	o.AtLeast, o.MaxRuntime, o.KillAfter = c.AtLeast, c.MaxRuntime, c.KillAfter
	o.Ignore, o.Conflict = c.OnLost == "ignore", c.Conflict
	o.Label, o.Quiet = c.Label, c.Quiet
	switch {
	case c.Nonblock:
		o.Wait = rlock.NoWait
	case c.Wait != nil:
		o.Wait = *c.Wait
	}
	if len(o.Args) > 0 && o.Args[0] == "--" {
		o.Args = o.Args[1:]
	}
	switch {
	case c.Script != nil && len(o.Args) > 0:
		return status.New(status.Usage, fmt.Errorf("--command and the command %s after the name "+
			"exclude each other; leave out one of the two", o.Args[0]))
	case c.Script != nil:
		o.Args = shellCommand(*c.Script)
	case c.Shell && len(o.Args) > 0:
		o.Args = shellCommand(strings.Join(o.Args, " "))
	}
	return runner.Run(o)
}

// shellCommand returns the arguments that make a shell run a script.
func shellCommand(script string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/C", script}
	}
	return []string{"/bin/sh", "-c", script}
}

// replicas is a value of rlock.Options.SyncReplicas.
type replicas int

// UnmarshalText reads a number or "connected".
func (r *replicas) UnmarshalText(text []byte) error {
	if string(text) == "connected" {
		*r = replicas(rlock.SyncConnected)
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil {
		return fmt.Errorf("must be a number of replicas or connected (got %q)", text)
	}
	*r = replicas(n)
	return nil
}
