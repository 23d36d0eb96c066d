package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"holdfast/cmd/holdfast/internal/connect"
	"holdfast/cmd/holdfast/internal/doctor"
	"holdfast/cmd/holdfast/internal/status"
	"holdfast/cmd/holdfast/internal/tty"
)

// doctorCommand is "holdfast doctor".
type doctorCommand struct {
	connect.Flags

	JSON   bool     `name:"json" help:"Print one JSON object per line."`
	Prefix string   `placeholder:"TEXT" help:"Prefix for the names of test locks, for users whose ACL allows only certain names."`
	Kind   []string `enum:"lock,fair,read,write,fenced" placeholder:"KIND" help:"Try only this kind of lock: lock, fair, read, write, or fenced. Repeat the flag for several kinds. Default: all."`
	Ignore []string `placeholder:"CHECK" help:"Skip this check. The second column of the output has the names. Repeat the flag to skip several checks."`
	Full   bool     `help:"Search all keys for locks that never expire, instead of the first 100,000."`
}

// Help returns the text that "holdfast doctor --help" shows.
func (doctorCommand) Help() string {
	return `Prints a summary, then one line for each check: eviction, persistence, replicas,
version, the permissions of this user, clocks, slow scripts, and more. A line is
ok, warning, or error, and says what to do. The doctor acquires and releases each
kind of lock under a name that nobody else uses. On a cluster it checks each
master.

The exit status is 0 if all is well, 1 with warnings, 2 with errors, and 74 if
Redis does not reply.

  holdfast doctor --redis rediss://shop@redis.example.com:6380 --prefix order:`
}

// Validate rejects checks that do not exist.
func (c doctorCommand) Validate() error {
	for _, name := range c.Ignore {
		if names := doctor.Names(); !slices.Contains(names, name) {
			return fmt.Errorf("--ignore: there is no check %q; the checks are %s", name,
				strings.Join(names, ", "))
		}
	}
	return nil
}

// Run examines the server.
func (c doctorCommand) Run(ctx context.Context) error {
	redis, err := c.Client(ctx)
	if err != nil {
		return err
	}
	defer redis.Close()
	var all []doctor.Finding
	report := func(f doctor.Finding) { all = append(all, f) }
	if c.JSON {
		report = doctor.JSON(os.Stdout)
	}
	options := doctor.Options{Prefix: c.Prefix, Full: c.Full, Endpoint: c.Endpoint(), Kinds: c.Kind,
		Ignore: c.Ignore}
	worst, err := doctor.Examine(ctx, redis, options, report)
	if len(all) > 0 {
		doctor.Lines(os.Stdout, os.Getenv("NO_COLOR") == "" && tty.Are(os.Stdout), all)
	}
	switch {
	case err != nil:
		return status.New(status.Server, err)
	case worst == doctor.OK:
		return nil
	case worst == doctor.Error:
		return status.New(status.Errors, nil)
	}
	return status.New(status.Warnings, nil)
}
