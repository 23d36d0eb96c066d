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
	Pattern string `arg:"" optional:"" help:"Names to watch, as a pattern for SCAN. Default: all locks."`

	Interval time.Duration `short:"i" default:"1s" placeholder:"DURATION" help:"Time between two refreshes (default 1s)."`

	connect.Flags
}

// Help returns the text that "holdfast top --help" shows.
func (topCommand) Help() string {
	return `Shows the locks with the most waiters first. A mark shows what changed since the
last refresh: + is a new lock, - a lock that is gone, * a new holder.

  holdfast top 'order:*'

  up, down, j, k   select a lock
  enter            show everything about the lock
  /                show only locks whose name or holder contains a text
  u                unlock the lock, after a question
  q, ctrl-c        quit`
}

// Validate refuses what cannot work.
func (c topCommand) Validate() error {
	if c.Interval < 100*time.Millisecond {
		return errors.New("--interval must be at least 100ms")
	}
	return nil
}

// Run watches locks.
func (c topCommand) Run(ctx context.Context) error {
	if !tty.Are(os.Stdin, os.Stdout) {
		return status.New(status.Usage, errors.New("top needs a terminal; use holdfast ls"))
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
