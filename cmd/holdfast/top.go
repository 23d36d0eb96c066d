package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/top"
	"holdfast/cmd/holdfast/internal/tty"
)

// topCommand is "holdfast top".
type topCommand struct {
	Pattern string `arg:"" optional:"" help:"Names to watch, as for SCAN."`

	Interval time.Duration `short:"i" default:"1s" placeholder:"D" help:"Pause between two looks: 1s."`

	connect.Flags
}

// Help returns the text that "holdfast top --help" shows.
func (topCommand) Help() string {
	return `Locks with most waiters come first. What changed since the last look is marked:
+ new, - gone, * another holder.

  holdfast top 'order:*'

  up, down, j, k   select a lock
  enter            show everything about it
  /                show only locks with a text in their names or holders
  u                unlock it, after a question
  q, ctrl-c        quit`
}

// Validate refuses what cannot work.
func (c topCommand) Validate() error {
	if c.Interval < 100*time.Millisecond {
		return errors.New("--interval: want 100ms or more")
	}
	return nil
}

// Run watches locks.
func (c topCommand) Run(ctx context.Context) error {
	if !tty.Are(os.Stdin, os.Stdout) {
		return status.New(status.Usage, errors.New("top needs a terminal: use holdfast ls"))
	}
	options, err := c.Options()
	if err != nil {
		return err
	}
	redis, err := c.Client(ctx)
	if err != nil {
		return err
	}
	defer redis.Close()
	return top.Run(ctx, redis, top.Options{
		Server:   strings.Join(options[0].InitAddress, ","),
		Pattern:  c.Pattern,
		Interval: c.Interval,
	})
}
