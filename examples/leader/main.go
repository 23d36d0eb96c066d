// Leader elects one of several processes: start it in some terminals, and stop the one that leads.
//
//	go run ./examples/leader 127.0.0.1:6379
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"holdfast/rlock"
)

// lead runs work in one process at a time: that which has the lock is the leader. The context of
// work ends when the process leads no more. Then work must return at once, because another process
// may lead already, and this one stands for election again, as it does after an outage of Redis.
// Otherwise lead returns with work, when the election can never succeed, or when ctx ends.
func lead(ctx context.Context, lock rlock.Locker, work func(ctx context.Context) error) error {
	for {
		var failure error // of work
		err := rlock.Do(ctx, lock, rlock.Forever, rlock.Watchdog, func(ctx context.Context) error {
			failure = unlessEnded(ctx, work(ctx))
			return failure
		})
		switch {
		case failure == nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case failure == nil && errors.Is(err, rlock.ErrLost):
			slog.Warn("leads no more", "error", err)
		case passes(err):
			slog.Warn("cannot stand for election", "error", err)
			pause(ctx)
		default:
			return err
		}
	}
}

// unlessEnded returns an error of work, but nil if it only says that the context has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// passes reports whether the lock could not be acquired for a reason that should pass by itself, as
// missing replicas do, and a wrong password does not. Most of these a wait outlasts anyway.
func passes(err error) bool {
	var refusal *rlock.ServerError
	if errors.As(err, &refusal) && refusal.Class == rlock.ClassPermanent {
		return false
	}
	return errors.Is(err, rlock.ErrNotRun) && (refusal != nil ||
		errors.Is(err, rlock.ErrOutcomeUnknown) || errors.Is(err, rlock.ErrNotReplicated))
}

// pause waits for a second, or until ctx ends.
func pause(ctx context.Context) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	interrupt := context.Cause(ctx) // nil if there was none; stop ends ctx as well
	stop()
	if err != nil && !errors.Is(err, interrupt) {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
}

// run leads, and says so every second.
func run(ctx context.Context, args []string) (err error) {
	if len(args) != 1 {
		return errors.New("usage: leader ADDRESS")
	}
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: args})
	if err != nil {
		return err
	}
	defer redis.Close()
	// Another process waits for 6 s at most if the leader dies.
	client, err := rlock.New(redis, rlock.Options{WatchdogLease: 6 * time.Second})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, client.Close(closing))
	}()
	return lead(ctx, client.NewLock("leader"), func(ctx context.Context) error {
		each := time.NewTicker(time.Second)
		defer each.Stop()
		for {
			fmt.Println("leads, at", time.Now().Format(time.TimeOnly))
			select {
			case <-each.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}
