// Command holdfast shows distributed locks at work.
//
//	holdfast demo                          # with a server of its own: needs only this program
//	holdfast demo --redis localhost:6379   # on a real Redis
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"holdfast/cmd/holdfast/internal/demo"
)

// interrupted is the exit status after a signal; shells use it for SIGINT.
const interrupted = 130

// tooBusy is the exit status if the demo says nothing about the locks.
const tooBusy = 2

type commandLine struct {
	Demo   demoCommand   `cmd:"" help:"Watch processes contend for locks, in about ten seconds."`
	Worker workerCommand `cmd:"" hidden:""`
}

func main() {
	var line commandLine
	parsed := kong.Parse(&line,
		kong.Name("holdfast"),
		kong.Description("Distributed locks on Redis, wire-compatible with Redisson's."),
		kong.ShortUsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"redis": redisHelp},
	)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal interrupts the cleanup
	parsed.BindTo(ctx, (*context.Context)(nil))
	err := parsed.Run()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "holdfast: interrupted")
		os.Exit(interrupted)
	case errors.Is(err, demo.ErrFailed):
		os.Exit(1) // the faults have been printed
	case errors.Is(err, demo.ErrNotJudged):
		fmt.Fprintln(os.Stderr, "holdfast:", err)
		os.Exit(tooBusy)
	default:
		fmt.Fprintln(os.Stderr, "holdfast:", err)
		os.Exit(1)
	}
}
