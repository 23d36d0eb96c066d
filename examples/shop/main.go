// Shop is a small service that was ported from Java: the same one, with Redisson and Lock4j, is in
// the directory java. Both work on the same stock at the same time, and keep each other out. Its
// files are the idioms of docs/porting.md: nested sections, several locks, a read-write lock, a job
// that runs once, and a middleware for annotations.
//
//	go run ./examples/shop 127.0.0.1:6379 4 40
//
// It is told the address of a Redis, how many workers there are, and how many rounds each works. It
// prints a line when it is ready, waits for one on its standard input, so that several may begin at
// the same time, and reports what it did.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"holdfast/rlock"
)

func main() {
	if err := untilTold(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// untilTold is run, until a terminal (SIGINT) or an orchestrator (SIGTERM) ends the program. A
// program that died of the signal would keep its locks for a lease.
func untilTold(args []string, in io.Reader, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, args, in, out)
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// run is the program.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	if len(args) != 3 {
		return errors.New("usage: shop ADDRESS WORKERS ROUNDS")
	}
	workers, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("workers: %w", err)
	}
	rounds, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("rounds: %w", err)
	}

	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: args[:1]})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", args[0], err)
	}
	defer redis.Close()
	locks, err := rlock.New(redis, rlock.Options{})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, locks.Close(closing))
	}()

	shop := New(locks, redisData{redis})
	fmt.Fprintln(out, "ready")
	begin := make(chan error, 1)
	go func() { // which may wait until the program ends
		_, err := bufio.NewReader(in).ReadString('\n')
		begin <- err
	}()
	select {
	case err := <-begin:
		if err != nil {
			return fmt.Errorf("wait for a line: %w", err)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	report, err := work(ctx, shop, workers, rounds)
	if err != nil {
		return err
	}
	return report.print(out)
}
