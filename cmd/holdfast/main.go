// Command holdfast runs commands under distributed locks on Redis, shows who holds which lock,
// frees those that are stuck, and checks servers.
//
//	holdfast demo                                 # needs only this program
//	holdfast run -n -q -E 0 nightly -- ./job      # on any number of machines, one runs it
//	holdfast ls                                   # who holds what
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"

	"holdfast/cmd/holdfast/internal/status"
)

type commandLine struct {
	Demo    demoCommand    `cmd:"" help:"Watch processes compete for locks, for about ten seconds."`
	Run     runCommand     `cmd:"" help:"Run a command under a lock."`
	Hold    holdCommand    `cmd:"" help:"Hold a lock for other processes, as a sidecar."`
	Ls      lsCommand      `cmd:"" help:"List locks with their holders and waiters."`
	Inspect inspectCommand `cmd:"" help:"Show everything about one lock."`
	Top     topCommand     `cmd:"" help:"Watch locks live. Locks with the most waiters come first."`
	Unlock  unlockCommand  `cmd:"" help:"Release a stuck lock."`
	Doctor  doctorCommand  `cmd:"" help:"Check a Redis server for settings and limits that can break locks."`
	Version versionCommand `cmd:"" help:"Print the version."`
	Help    helpCommand    `cmd:"" help:"Print help about a command, or about the server flags."`

	Completion kongcompletion.Completion `cmd:"" help:"Print the line for your shell's start-up file that turns on completion."`

	Worker workerCommand `cmd:"" hidden:""`

	ShowVersion versionFlag `name:"version" help:"Print the version."`
}

// commandLineOf returns a commandLine without the other commands, if there is one of this name. To
// describe all of them takes kong several milliseconds.
func commandLineOf(command string) any {
	all, known := reflect.TypeFor[commandLine](), false
	var fields []reflect.StructField
	for i := range all.NumField() {
		field := all.Field(i)
		_, isCommand := field.Tag.Lookup("cmd")
		named := isCommand && strings.ToLower(field.Name) == command
		if known = known || named; named || !isCommand {
			fields = append(fields, field)
		}
	}
	if !known || command == "help" { // which describes the others
		return new(commandLine)
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// exactly decodes an argument as it is. kong's own mapper replaces bytes that are not UTF-8, but
// names of files and of locks may have any.
func exactly(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	text, is := token.Value.(string)
	if !is {
		return fmt.Errorf("this argument must be a string (got %v)", token.Value)
	}
	target.SetString(text)
	return nil
}

// seconds decodes a duration, or a number without a unit as seconds, as flock does.
func seconds(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("duration")
	if err != nil {
		return err
	}
	text := fmt.Sprint(token.Value)
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("expected a duration such as 1m30s, or seconds (got %q)", token.Value)
	}
	target.SetInt(int64(d))
	return nil
}

// mistaken returns the command that a mistake was made in, as far as it is known.
func mistaken(err error) string {
	var parsing *kong.ParseError
	if errors.As(err, &parsing) && parsing.Context.Selected() != nil {
		return parsing.Context.Selected().FullPath()
	}
	return "holdfast"
}

func main() {
	completing := os.Getenv("COMP_LINE") != ""
	grammar := any(new(commandLine))
	if !completing && len(os.Args) > 1 {
		grammar = commandLineOf(os.Args[1])
	}
	parser := kong.Must(grammar,
		kong.Name("holdfast"),
		kong.Description("Distributed locks on Redis, wire-compatible with Redisson's."),
		kong.ShortUsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(printHelp),
		kong.Vars{"redis": redisHelp},
		kong.KindMapper(reflect.String, kong.MapperFunc(exactly)),
		kong.Writers(completions(os.Stdout), os.Stderr),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(seconds)),
	)
	if completing {
		kongcompletion.Register(parser,
			kongcompletion.WithPredictor("lock", complete.PredictFunc(lockNames)))
	}
	parsed, err := parser.Parse(os.Args[1:])
	if err != nil {
		advice := ""
		if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-") {
			advice = "; write flags after the command"
		}
		fmt.Fprintf(os.Stderr, "holdfast: %v%s\nRun: %s --help\n", err, advice, mistaken(err))
		os.Exit(status.Usage)
	}
	interrupted := func() bool { return false }
	// A command without a context, such as run, handles signals itself.
	err = parsed.BindToProvider(func() (context.Context, error) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second signal interrupts the cleanup
		interrupted = func() bool { return ctx.Err() != nil }
		return ctx, nil
	})
	if err == nil {
		err = parsed.Run()
	}
	if err != nil && interrupted() {
		err = status.New(status.Interrupted, errors.New("interrupted"))
	}
	os.Exit(status.Report(os.Stderr, err))
}
