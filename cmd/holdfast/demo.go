package main

import (
	"context"
	"errors"
	"os"

	"holdfast/cmd/holdfast/internal/demo"
	"holdfast/cmd/holdfast/internal/status"
)

// redisHelp is the help of --redis, which is too long for a tag.
const redisHelp = "Redis server to use, as host:port or redis://user@host:port/db (rediss:// " +
	"for TLS). Put the password into REDISCLI_AUTH. The keys of the demo have a random prefix, " +
	"and the demo deletes them at the end. Default: an embedded server."

// demoCommand is "holdfast demo".
type demoCommand struct {
	Redis string `placeholder:"ADDR" help:"${redis}"`
	Plain bool   `help:"Print only the story, even on a terminal."`
	Break bool   `hidden:"" help:"Leave out the lock of the counter, to see the checks fail."`
}

// Help returns the text that "holdfast demo --help" shows.
func (demoCommand) Help() string {
	return `27 processes play seven scenes at the same time:

  counter    Four processes increment one counter under a lock.
  queue      Processes queue for a fair lock. One gives up, and one is killed.
  readwrite  Readers share the lock, and a writer holds it alone.
  transfer   Two accounts are locked together, whatever their order.
  redlock    A lock on a quorum of five embedded servers, of which two die.
  watchdog   A holder outlives its lease until it is killed. Another gives up.
  leader     One of three leads. It is killed, and the next leader resigns.

On a terminal, a table below the story shows the locks that are in Redis.

The demo checks mutual exclusion and order itself, without asking the locks. The
exit status is 1 if two holders overlapped, the counter is wrong, a waiter was
overtaken, or a scene did not go as promised. If that happens while the machine
stood still, the demo plays the scene again. After three such tries the exit
status is 2.`
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
