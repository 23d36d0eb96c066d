package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/tty"
	"holdfast/cmd/holdfast/internal/view"
	"holdfast/internal/rediserr"
)

// lsCommand is "holdfast ls".
type lsCommand struct {
	Pattern string `arg:"" optional:"" help:"Names to list, as a pattern for SCAN. Default: all locks."`

	JSON     bool          `name:"json" help:"Print one JSON object per line, as locks are found."`
	Cycles   bool          `help:"Print only cycles of processes that wait for each other."`
	Count    int           `default:"1000" placeholder:"N" help:"Number of keys that each SCAN examines (default 1000)."`
	Interval time.Duration `placeholder:"DURATION" help:"Pause between two SCANs, for a busy server. Default: no pause."`

	connect.Flags
}

// Help returns the text that "holdfast ls --help" shows.
func (lsCommand) Help() string {
	return `Lists Redisson's locks as well. For plain locks the list of waiters is
incomplete, because Redis does not record most of them.

  holdfast ls --json 'order:*' | jq 'select(.ttl_ms == -1)'

A JSON object has name, kind, holders, waiters, ttl_ms (0 if the lock is free, -1
if the lock never expires), token, node, and slot.

With --cycles, a cycle of Java threads is certain, and the exit status is 1. A
cycle of other processes is only possible, because different goroutines or
threads of one process may hold and wait.`
}

// Validate refuses what cannot work.
func (c lsCommand) Validate() error {
	if c.Count < 1 || c.Interval < 0 {
		return errors.New("--count must be at least 1, and --interval must not be negative")
	}
	return nil
}

// Run lists locks.
func (c lsCommand) Run(ctx context.Context) error {
	redis, err := c.Client(ctx)
	if err != nil {
		return err
	}
	defer redis.Close()
	query := locks.Query{Pattern: c.Pattern, Count: c.Count, Interval: c.Interval}
	switch {
	case c.Cycles:
		return c.listCycles(ctx, redis, query)
	case c.JSON:
		return streamJSON(locks.List(ctx, redis, query))
	}
	all, err := collect(ctx, redis, query)
	out := bufio.NewWriter(os.Stdout)
	if len(all) == 0 && err == nil {
		sayNothingFound("no locks")
	}
	if len(all) > 0 {
		for _, line := range view.Table(all, tty.Width(os.Stdout), time.Now()) {
			fmt.Fprintln(out, line)
		}
	}
	return cmp.Or(out.Flush(), err)
}

// sayNothingFound tells somebody at a terminal that there is nothing to print. Elsewhere it is
// silent.
func sayNothingFound(text string) {
	if tty.Are(os.Stdout) {
		status.Print(os.Stderr, text)
	}
}

// streamJSON prints locks as they are found.
func streamJSON(all func(func(locks.Lock, error) bool)) error {
	out := json.NewEncoder(os.Stdout)
	for lock, err := range all {
		if err == nil {
			err = out.Encode(lock)
		}
		if err != nil {
			return withStatus(err)
		}
	}
	return nil
}

// collect returns all locks by name, also if there is an error.
func collect(ctx context.Context, redis rueidis.Client, q locks.Query,
) (all []locks.Lock, err error) {
	for lock, failed := range locks.List(ctx, redis, q) {
		if failed != nil {
			err = withStatus(failed)
			break
		}
		all = append(all, lock)
	}
	slices.SortFunc(all, func(a, b locks.Lock) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// withStatus returns an error of package locks with its exit status; nil for nil.
func withStatus(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, locks.ErrNotLock):
		return status.New(status.Failed, err)
	}
	return status.New(status.Server, rediserr.Classify(err))
}
