package main

import (
	"context"
	"errors"
	"os"

	"holdfast/cmd/holdfast/internal/demo"
	"holdfast/cmd/holdfast/internal/status"
)

// redisHelp is the help of --redis, which is too long for a tag.
const redisHelp = "Redis to use: host:port, or redis://user:password@host:port/db (rediss:// for " +
	"TLS). Keys get a random prefix and are deleted at the end. Default: an embedded server."

// demoCommand is "holdfast demo".
type demoCommand struct {
	Redis string `placeholder:"ADDR" help:"${redis}"`
	Plain bool   `help:"Print lines even on a terminal. NO_COLOR=1 keeps the picture, uncoloured."`
	Break bool   `hidden:"" help:"Leave out the lock of the counter, to see the checks fail."`
}

// Help returns the text that "holdfast demo --help" shows.
func (demoCommand) Help() string {
	return `27 processes play eight scenes at the same time:

  counter    four processes increment one counter; only the lock parts them
  queue      processes queue for a fair lock; one gives up, one is killed
  readwrite  readers hold it together, a writer alone; readers step back
  transfer   two accounts are locked together, whatever their order
  redlock    a lock on a quorum of five embedded servers; two of them die
  watchdog   a lease is renewed, so that its holder outlives it several times
  takeover   a holder is killed; its lock passes on when its lease ends
  timeout    a contender gives up, and reports how long the lock is still held

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
