package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/term"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/view"
	"holdfast/lua"
)

// lsCommand is "holdfast ls".
type lsCommand struct {
	Pattern string `arg:"" optional:"" help:"Names to list, as for SCAN: order:*"`

	JSON     bool          `name:"json" help:"One object for each lock, on a line, as it is found."`
	Cycles   bool          `help:"Circles of processes that wait for each other, instead of locks."`
	Count    int           `default:"1000" placeholder:"N" help:"Keys that one SCAN looks at (default 1000)."`
	Interval time.Duration `placeholder:"D" help:"Pause between two SCANs, such as 5ms."`

	connect.Flags
}

// Help returns the text that "holdfast ls --help" shows.
func (lsCommand) Help() string {
	return `Lists locks that are held or waited for, also those of Redisson, with SCAN on each
master. Redis does not know waiters for plain locks of Redisson, and others of this library only
in part. The holder is a label or program if it told Redis who it is, else its id.

  holdfast ls 'order:*'
  holdfast ls --json | jq -r 'select(.ttl_ms == -1) | .name'   # those that never expire

JSON: name, kind, holders and waiters (owner, count, mode, since, until, client: program, host, pid,
start, label), ttl_ms (0 free, -1 never ends), token, node, slot.

--cycles says what to unlock. A circle is certain if the owners that wait are those that hold, and
possible if only their processes are the same. The exit status is 1 if one is certain.`
}

// Validate refuses what cannot work.
func (c lsCommand) Validate() error {
	if c.Count < 1 || c.Interval < 0 {
		return fmt.Errorf("--count: want 1 or more, and no negative --interval")
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
	if len(all) > 0 {
		for _, line := range view.Table(all, width()) {
			fmt.Fprintln(out, line)
		}
	}
	return cmp.Or(out.Flush(), err)
}

// streamJSON prints locks as they are found.
func streamJSON(all func(func(locks.Lock, error) bool)) error {
	out := json.NewEncoder(os.Stdout)
	for lock, err := range all {
		if err == nil {
			err = out.Encode(lock)
		}
		if err != nil {
			return serverTrouble(err)
		}
	}
	return nil
}

// collect returns all locks by name, also if there is an error.
func collect(ctx context.Context, redis rueidis.Client, q locks.Query) (all []locks.Lock, err error) {
	for lock, failed := range locks.List(ctx, redis, q) {
		if failed != nil {
			err = serverTrouble(failed)
			break
		}
		all = append(all, lock)
	}
	slices.SortFunc(all, func(a, b locks.Lock) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// serverTrouble gives an error of the server its exit status.
func serverTrouble(err error) error { return status.New(status.Server, lua.Classify(err)) }

// width returns the columns of the terminal; 0 elsewhere.
func width() int {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return columns
}
