package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"holdfast/integration/history"
	"holdfast/multilock"
	"holdfast/redlock"
	"holdfast/rlock"
)

// Client is the role of a client process: it reads its plan, uses locks until its standard input
// ends, and writes what happened to its standard output.
func Client([]string) error {
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	var p plan
	if err := json.Unmarshal(line, &p); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, input) // only its end matters
	}()
	c := newClient(p, newRecorder(p.Process, os.Stdout))
	go c.record.watchStandstills(ctx)
	for _, a := range p.Redises {
		c.options = append(c.options, p.option(a))
	}
	c.leftBehind = p.leftBehind
	return c.run(ctx)
}

// client is a process that uses locks.
type client struct {
	plan       plan
	record     *recorder
	options    []rueidis.ClientOption // one for each independent Redis
	leftBehind func() error           // of what is left in the process when all is closed
	tracer     rlock.Tracer           // or nil
	wrap       func(rueidis.Client) rueidis.Client

	owners    owners
	redises   []rueidis.Client
	rlocks    []*rlock.Client
	releasing chan struct{} // bounds how many locks that were kept are released at a time
}

func newClient(p plan, r *recorder) *client {
	return &client{plan: p, record: r, releasing: make(chan struct{}, 128)}
}

// run uses locks until ctx ends, then closes everything and records what is left.
func (c *client) run(ctx context.Context) error {
	if err := c.connect(ctx); err != nil {
		return err
	}
	c.record.write(history.Event{At: history.Now(), What: history.Started})
	var workers sync.WaitGroup
	for i := range c.plan.Workers {
		w := &worker{client: c, index: i, dice: rand.New(rand.NewPCG(c.plan.Seed, uint64(i)))}
		workers.Go(func() { w.run(ctx) })
	}
	for i, name := range c.plan.Kept {
		w := &worker{client: c, index: i, dice: rand.New(rand.NewPCG(c.plan.Seed+1, uint64(i)))}
		workers.Go(func() { w.keep(ctx, name) })
	}
	if len(c.plan.Storm) > 0 {
		workers.Go(func() { c.storm(ctx) })
	}
	workers.Wait()
	ended := history.Event{What: history.Ended}
	if err := c.close(); err != nil {
		ended.Error = err.Error()
	}
	ended.At = history.Now()
	c.record.write(ended)
	return nil
}

// connect creates the clients. A server may be down at the moment.
func (c *client) connect(ctx context.Context) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	for _, option := range c.options {
		redis, err := dial(ctx, option)
		if err != nil {
			return err
		}
		if c.wrap != nil {
			redis = c.wrap(redis)
		}
		c.redises = append(c.redises, redis)
		locks, err := rlock.New(redis, rlock.Options{
			WatchdogLease:  c.plan.WatchdogLease,
			CommandTimeout: c.plan.Command,
			FairWindow:     shortestFairWindow,
			HandOver:       c.plan.HandOver,
			SyncReplicas:   c.plan.SyncReplicas,
			Logger:         logger,
			Tracer:         c.tracer,
			ReleaseOnClose: c.plan.ReleaseOnClose,
		})
		if err != nil {
			return err
		}
		c.rlocks = append(c.rlocks, locks)
	}
	return nil
}

// shortestFairWindow is the shortest window that rlock accepts: a fair lock forgets a killed waiter
// after that.
const shortestFairWindow = 10 * time.Second

// dial creates a rueidis client. It retries until ctx ends.
func dial(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		redis, err := rueidis.NewClient(option)
		if err == nil {
			return redis, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("never connected: %w", err)
		}
	}
}

// close closes everything. Its error lists what is left behind.
func (c *client) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.plan.WatchdogLease+5*c.plan.Command)
	defer cancel()
	for _, locks := range c.rlocks {
		if err := locks.Close(ctx); err != nil {
			return err
		}
	}
	for _, redis := range c.redises {
		redis.Close()
	}
	if c.leftBehind == nil {
		return nil
	}
	return c.leftBehind()
}

// locker returns the lock that is asked for, or a MultiLock of several.
func (c *client) locker(locks []history.Lock) rlock.Locker {
	if len(locks) == 1 {
		return c.lock(locks[0])
	}
	parts := make([]rlock.Locker, len(locks))
	for i, l := range locks {
		parts[i] = c.lock(l)
	}
	return multilock.New(parts...)
}

func (c *client) lock(l history.Lock) rlock.Locker {
	first := c.rlocks[0]
	switch l.Kind {
	case history.Fair:
		return first.NewFairLock(l.Name)
	case history.Fenced:
		return first.NewFencedLock(l.Name)
	case history.Read:
		return first.NewReadWriteLock(l.Name).Read()
	case history.Write:
		return first.NewReadWriteLock(l.Name).Write()
	case history.Quorum:
		return redlock.NewOn(l.Name, redlock.Options{
			MaxLease: c.plan.WatchdogLease, FsyncAlways: c.plan.Durable,
		}, c.rlocks...)
	default:
		return first.NewLock(l.Name)
	}
}
