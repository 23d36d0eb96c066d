// Leader elects one of several processes. Start it in several terminals, and stop the leader.
//
//	go run ./examples/leader 127.0.0.1:6379
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"holdfast/leader"
	"holdfast/rlock"
)

// lead prints every second that this process leads, until ctx ends.
func lead(ctx context.Context) error {
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
}

// run stands for election until ctx ends.
func run(ctx context.Context, args []string) (err error) {
	if len(args) != 1 {
		return errors.New("usage: leader ADDRESS")
	}
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: args})
	if err != nil {
		return err
	}
	defer redis.Close()
	// If the leader dies, another process takes over within 6 s.
	client, err := rlock.New(redis, rlock.Options{WatchdogLease: 6 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.Background())) }()
	return leader.Run(ctx, client.NewLock("leader"), leader.Options{}, lead)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	interrupt := context.Cause(ctx) // nil if there was none; stop ends ctx as well
	stop()
	if err != nil && !errors.Is(err, interrupt) {
		log.Fatal(err)
	}
}
