// Bench measures this library against raw scripts without any library, and against other libraries,
// and prints the results. See README.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"holdfast/bench/contestants"
	"holdfast/bench/report"
	"holdfast/bench/scenario"
	"holdfast/bench/server"
	"holdfast/bench/worker"
)

func main() {
	if worker.Requested() {
		worker.Serve()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	short, quiet          bool
	rounds                int
	scenario, contestant  *regexp.Regexp
	json, markdown, plots string
	profiles, as          string
}

func parse() (options, error) {
	var o options
	var pattern, who string
	flag.BoolVar(&o.short, "short", false, "shorter and fewer rounds: less than three minutes in all")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds of each contestant (default 3, or 2 with -short)")
	flag.StringVar(&pattern, "scenario", "", "only scenarios that match this regular `expression`")
	flag.StringVar(&who, "contestant", "",
		"only contestants that match this regular `expression`, and the floor")
	flag.StringVar(&o.json, "json", "", "write the figures of all rounds to this `file`")
	flag.StringVar(&o.markdown, "markdown", "", "write the report to this `file`")
	flag.StringVar(&o.plots, "plots", "", "draw plots into this `directory`")
	flag.StringVar(&o.profiles, "cpuprofile", "",
		"write CPU profiles of the processes with a client into this `directory`")
	flag.StringVar(&o.as, "as", "",
		"the `command` that a reader repeats the run with, if it is not this one")
	flag.BoolVar(&o.quiet, "quiet", false, "do not say on standard error what is being measured")
	flag.Parse()
	if o.rounds == 0 {
		o.rounds = 3
		if o.short {
			o.rounds = 2
		}
	}
	var err, also error
	o.scenario, err = regexp.Compile(pattern)
	o.contestant, also = regexp.Compile(who)
	return o, errors.Join(err, also)
}

func run(ctx context.Context) (err error) {
	o, err := parse()
	if err != nil {
		return err
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return err
		}
		if err := os.Setenv(scenario.ProfileVariable, o.profiles); err != nil {
			return err
		}
	}
	result, err := measureAll(ctx, o)
	if result == nil {
		return err
	}
	fmt.Println(result.Text())
	if o.json != "" {
		err = errors.Join(err, result.WriteJSON(o.json))
	}
	if o.markdown != "" {
		err = errors.Join(err, os.WriteFile(o.markdown, []byte(result.Markdown()), 0o644))
	}
	if o.plots != "" {
		err = errors.Join(err, result.Plot(o.plots))
	}
	return err
}

// measureAll runs the requested scenarios. With an error it may still return the results of those
// that did not fail.
func measureAll(ctx context.Context, o options) (*report.Result, error) {
	began := time.Now()
	e := &scenario.Env{Short: o.short, Rounds: o.rounds, Who: o.contestant, Pool: &worker.Pool{}}
	defer func() { e.Pool.Stop() }()
	e.Log = func(format string, args ...any) {
		if !o.quiet {
			fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(began).Seconds(),
				fmt.Sprintf(format, args...))
		}
	}
	var wanted []scenario.Scenario
	for _, s := range scenario.All {
		if o.scenario.MatchString(s.Key) {
			wanted = append(wanted, s)
		}
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("no scenario matches %q", o.scenario)
	}
	java := ""
	if e.WantsJava(wanted) {
		e.Log("Redisson is built, if it has changed")
		var err error
		e.Java, java, err = contestants.BuildRedisson(ctx)
		if err != nil {
			return nil, err
		}
		e.Log("%s", java)
	}
	defer e.StopNodes()
	if err := e.StartNodes(ctx, wanted); err != nil {
		return nil, err
	}
	result := &report.Result{Java: java}
	var failed error
	for _, s := range wanted {
		table, err := runOne(ctx, e, s, result)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil { // the others are still worth their time
			failed = errors.Join(failed, fmt.Errorf("%s: %w", s.Key, err))
			continue
		}
		result.Tables = append(result.Tables, table)
	}
	result.Machine.Command, result.Machine.Rounds = cmp.Or(o.as,
		strings.Join(append([]string{"go run ."}, os.Args[1:]...), " ")), o.rounds
	return result, failed
}

// runOne runs a scenario on a server of its own.
func runOne(
	ctx context.Context, e *scenario.Env, s scenario.Scenario, result *report.Result,
) (*report.Table, error) {
	var err error
	e.Delay = s.Delay
	e.Server, err = e.Start(ctx, worker.AnyCore)
	if err != nil {
		return nil, err
	}
	defer e.Server.Stop()
	if result.Machine.Redis == "" {
		version, err := server.Version(e.Server.Address)
		if err != nil {
			return nil, err
		}
		result.Machine = report.ThisMachine(version, "", 0)
	}
	return s.Run(ctx, e)
}
