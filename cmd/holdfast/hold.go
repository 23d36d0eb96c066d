package main

import (
	"time"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/runner"
	"holdfast/rlock"
)

// holdCommand is "holdfast hold".
type holdCommand struct {
	Kind       string        `enum:"lock,fair,read,write,fenced" default:"lock" placeholder:"KIND" help:"Kind of lock: lock (default), fair, read, write, or fenced."`
	ReadyFile  string        `placeholder:"FILE" help:"File that exists only while the lock is held."`
	HTTP       string        `name:"http" placeholder:"ADDR" help:"Serve /readyz (200 while the lock is held, else 503) and / (JSON) at this address, for example :8080."`
	OnAcquired *string       `placeholder:"COMMAND" help:"Run this command with sh -c after each acquisition of the lock. It is ended when the lock is lost or released."`
	OnLost     *string       `placeholder:"COMMAND" help:"Run this command with sh -c after each loss of the lock, and before its release."`
	ExitOnLoss bool          `help:"Exit with 76 if the lock is lost, instead of waiting for the lock again."`
	Lease      time.Duration `default:"30s" placeholder:"DURATION" help:"Lease of the lock (default 30s). If this machine dies, the lock stays taken for this long."`
	Label      string        `placeholder:"TEXT" help:"What others see as the holder of the lock. Default: hold."`
	Replicas   replicas      `name:"sync-replicas" placeholder:"N" help:"Acquire the lock only if N replicas have it. The value connected requires one replica while a replica is connected."`
	Fsync      bool          `name:"fsync-always" help:"With --quorum: all servers run with appendfsync always, so a restarted server counts at once."`
	Quorum     bool          `help:"Lock a majority of independent servers (RedLock). Give --redis once for each server."`
	Metrics    string        `name:"metrics-file" placeholder:"FILE" help:"Write metrics to this file, for the textfile collector of node_exporter."`
	Log        string        `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Print messages as text (default), or as json with one object per line."`
	Quiet      bool          `short:"q" help:"Print only warnings and errors."`
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
	return runner.Hold(runner.HoldOptions{
		Options: runner.Options{Flags: c.Flags, Name: c.Name, Kind: runner.Kind(c.Kind),
			Quorum: c.Quorum, Wait: rlock.Forever, Lease: c.Lease, Quiet: c.Quiet, Label: c.Label,
			SyncReplicas: int(c.Replicas), FsyncAlways: c.Fsync,
			JSON: c.Log == "json", MetricsFile: c.Metrics},
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
