package main

import (
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
)

// inspectCommand is "holdfast inspect".
type inspectCommand struct {
	Name string `arg:"" predictor:"lock" help:"Name of the lock."`

	Watch bool `short:"w" help:"Refresh every second. Without a terminal, print only changes."`
	JSON  bool `name:"json" help:"Print the JSON object of ls --json, and the number of subscribers."`

	connect.Flags
}

// Help returns the text that "holdfast inspect --help" shows.
func (inspectCommand) Help() string {
	return `Prints the holders and since when their processes run, the waiters in their
order, the last fencing token, and the number of connections that listen for the
release. Redisson clients that wait for a plain lock show up only in that number.

  holdfast inspect --watch order:42

The exit status is 1 if nobody holds the lock or waits for it.`
}

// between is the time between two looks of --watch.
const between = time.Second

// Run shows the lock.
func (c inspectCommand) Run(ctx context.Context) error {
	redis, err := c.Client(ctx)
	if err != nil {
		return err
	}
	defer redis.Close()
	if c.Watch {
		return c.watch(ctx, redis)
	}
	lock, err := c.look(ctx, redis)
	if err == nil {
		_, err = os.Stdout.WriteString(c.show(lock))
	}
	return err
}

// watch shows the lock again and again, until ctx ends. The lock may come and go.
func (c inspectCommand) watch(ctx context.Context, redis rueidis.Client) error {
	redraws := !c.JSON && tty.Are(os.Stdout)
	tick := time.NewTicker(between)
	defer tick.Stop()
	for last := ""; ; {
		lock, err := c.look(ctx, redis)
		var e *status.Error
		if errors.As(err, &e) && e.Status != status.Failed {
			return err
		}
		text := c.show(lock)
		if redraws {
			const home = "\x1b[H\x1b[2J" // of an empty screen
			text = home + text
		}
		if now := fingerprint(lock); redraws || now != last {
			last = now
			if _, err := os.Stdout.WriteString(text); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// look reads the lock. There has to be one.
func (c inspectCommand) look(ctx context.Context, redis rueidis.Client) (locks.Lock, error) {
	lock, err := locks.Inspect(ctx, redis, c.Name)
	if err == nil && lock.Holding()+lock.Waiting() == 0 {
		return lock, status.New(status.Failed, fmt.Errorf("lock %q: not found, because "+
			"nobody holds it or waits for it; holdfast ls lists all locks", c.Name))
	}
	return lock, withStatus(err)
}

// show returns the lock as it is printed.
func (c inspectCommand) show(lock locks.Lock) string {
	if !c.JSON {
		return view.Details(lock, time.Now())
	}
	return object(lock) + "\n"
}

// fingerprint returns what a lock has that does not change by itself as time passes.
func fingerprint(lock locks.Lock) string {
	lock.TTL, lock.Waiters = min(lock.TTL, 1), slices.Clone(lock.Waiters)
	for i := range lock.Waiters {
		lock.Waiters[i].Since, lock.Waiters[i].Until = time.Time{}, time.Time{}
	}
	return object(lock)
}

// object returns a lock in JSON.
func object(lock locks.Lock) string {
	text, err := json.Marshal(lock)
	if err != nil {
		panic(err) // the type has a form for every value
	}
	return string(text)
}
