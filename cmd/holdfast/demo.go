package main

import (
	"context"
	"errors"
	"os"

	"holdfast/cmd/holdfast/internal/demo"
	"holdfast/cmd/holdfast/internal/status"
)

// redisHelp is the help of --redis, which is too long for a tag.
const redisHelp = "Redis to use: host:port, or redis://user@host:port/db (rediss:// for " +
	"TLS), with the password in REDISCLI_AUTH. Keys get a random prefix and are deleted at the " +
	"end. Default: an embedded server."

// demoCommand is "holdfast demo".
type demoCommand struct {
	Redis string `placeholder:"ADDR" help:"${redis}"`
	Plain bool   `help:"Print the story only, even on a terminal."`
	Break bool   `hidden:"" help:"Leave out the lock of the counter, to see the checks fail."`
}

// Help returns the text that "holdfast demo --help" shows.
func (demoCommand) Help() string {
	return `23 processes play six scenes at the same time:

  counter    four processes increment one counter; only the lock parts them
  queue      processes queue for a fair lock; one gives up, one is killed
  readwrite  readers hold it together, a writer alone; readers step back
  transfer   two accounts are locked together, whatever their order
  redlock    a lock on a quorum of five embedded servers; two of them die
  watchdog   a holder outlives its lease, until it is killed; one gives up

On a terminal, a table below the story shows the locks that are in Redis.

The demo checks mutual exclusion and order itself, without asking the locks. The exit status is 1
if two sections overlapped that should not, the counter is off, a waiter was overtaken, or a scene
did not go as promised. If it went wrong while the machine stood still, it is played again; it is 2
if that happens three times.`
}

// Run plays the demo.
func (c demoCommand) Run(ctx context.Context) error {
	err := demo.Run(ctx, demo.Options{
		Redis:    c.Redis,
		Plain:    c.Plain,
		Unlocked: c.Break,
		Output:   os.Stdout,
	})
	switch {
	case errors.Is(err, demo.ErrFailed):
		return status.New(status.Failed, nil) // the faults have been printed
	case errors.Is(err, demo.ErrNotJudged):
		return status.New(status.Undecided, err)
	}
	return err
}

// workerCommand is "holdfast worker": a process of the demo, which starts it.
type workerCommand struct{}

// Run plays the part that it reads from standard input.
func (workerCommand) Run(ctx context.Context) error {
	return demo.Work(ctx, os.Stdin, os.Stdout)
}
