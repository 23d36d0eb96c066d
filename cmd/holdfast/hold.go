package main

import (
	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/runner"
	"holdfast/rlock"
)

// holdCommand is "holdfast hold".
type holdCommand struct {
	ReadyFile  string  `placeholder:"FILE" help:"File that exists only while the lock is held."`
	HTTP       string  `name:"http" placeholder:"ADDR" help:"Serve /readyz (200 while the lock is held, else 503) and / (JSON) at this address, for example :8080."`
	OnAcquired *string `placeholder:"COMMAND" help:"Run this command with sh -c after each acquisition of the lock. It is ended when the lock is lost or released."`
	OnLost     *string `placeholder:"COMMAND" help:"Run this command with sh -c after each loss of the lock, and before its release."`
	ExitOnLoss bool    `help:"Exit with 76 if the lock is lost, instead of waiting for the lock again."`
	Label      string  `placeholder:"TEXT" help:"What others see as the holder of the lock. Default: hold."`
	Quiet      bool    `short:"q" help:"Print only warnings and errors."`
	lockFlags
	connect.Flags

	Name string `arg:"" predictor:"lock" help:"Name of the lock."`
}

// Help returns the text that "holdfast hold --help" shows.
func (holdCommand) Help() string {
	return `Holds the lock for other processes, such as the other containers of a pod. Waits
for the lock, holds and renews it, and waits again if the lock is lost. While
Redis does not reply, hold tries again.

  holdfast hold --http :8080 --label "$HOSTNAME" leader

On SIGTERM, SIGINT, or SIGHUP, hold releases the lock and exits with 0. A second
signal kills a hook that still runs. Other exit statuses:

  64  The command line is wrong, or a file or the address cannot be used.
  74  Redis rejected a command.
  76  The lock was lost with --exit-on-loss, or shortly before its release.

Hooks have the environment variables of holdfast run. HOLDFAST_EVENT is acquired,
lost, or released. A hook for lost or released is ended after one --lease.`
}

// Run holds the lock. It handles signals itself.
func (c holdCommand) Run() error {
	options := c.options()
	options.Flags, options.Name, options.Wait = c.Flags, c.Name, rlock.Forever
	options.Label, options.Quiet = c.Label, c.Quiet
	return runner.Hold(runner.HoldOptions{
		Options:   options,
		ReadyFile: c.ReadyFile, HTTP: c.HTTP, OnAcquired: hookCommand(c.OnAcquired),
		OnLost: hookCommand(c.OnLost), ExitOnLoss: c.ExitOnLoss,
	})
}

// hookCommand returns the arguments of a hook, if there is one.
func hookCommand(script *string) []string {
	if script == nil {
		return nil
	}
	return shellCommand(*script)
}
