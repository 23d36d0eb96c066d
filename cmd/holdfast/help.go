package main

import (
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/status"
)

// helpCommand is "holdfast help".
type helpCommand struct {
	Topic string `arg:"" optional:"" help:"A command, or server for the flags that choose a Redis server."`
}

// Run prints help about the topic, as "holdfast TOPIC --help" does.
func (c helpCommand) Run(app *kong.Kong) error {
	var args []string
	switch {
	case c.Topic == "server":
		return printServerHelp(app.Stdout)
	case c.Topic != "":
		args = append(args, c.Topic)
	}
	_, _ = app.Parse(append(args, "--help")) // prints the help and exits
	return status.New(status.Usage, fmt.Errorf("there is no help about %q; run holdfast help",
		c.Topic))
}

// printServerHelp prints the help of the flags that all commands for a server have.
func printServerHelp(w io.Writer) error {
	var flags connect.Flags
	app, err := kong.New(&flags,
		kong.Name("holdfast COMMAND"),
		kong.Description("Each command that connects to Redis has these flags."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(w, w),
		kong.Exit(func(int) {}),
	)
	if err != nil {
		return err
	}
	_, err = app.Parse([]string{"--help"})
	return err
}

// printHelp prints the help of a command without most of the flags for a server.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	selected := ctx.Selected()
	if selected == nil {
		return kong.DefaultHelpPrinter(options, ctx)
	}
	hidden := false
	for _, flag := range selected.Flags {
		if flag.Group != nil && flag.Group.Key == connect.Group && flag.Name != "redis" {
			flag.Hidden, hidden = true, true
		}
	}
	err := kong.DefaultHelpPrinter(options, ctx)
	if err == nil && hidden && !options.Summary {
		_, err = fmt.Fprintln(ctx.Stdout, "  More server flags: holdfast help server")
	}
	return err
}
