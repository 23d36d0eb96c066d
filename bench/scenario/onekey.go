package scenario

import (
	"context"
	"time"

	"holdfast/bench/report"
	"holdfast/bench/server"
)

// contendedColumns returns the columns of one lock that all contend for.
func contendedColumns() []report.Column {
	return []report.Column{
		{Key: "rate", Head: "acq/s", Unit: report.Count, Ratio: true},
		{Key: "commands", Head: "commands", Unit: report.Decimal},
		{Key: "server", Head: "server", Unit: report.Duration},
		{Key: "allocs", Head: "allocs", Unit: report.Decimal},
		{Key: "jain", Head: "Jain", Unit: report.Decimal},
		{Key: "wait50", Head: "wait p50", Unit: report.Duration},
		{Key: "wait99", Head: "wait p99", Unit: report.Duration},
		{Key: "longest", Head: "longest", Unit: report.Duration},
		{Key: "boundmax", Head: "x FIFO", Unit: report.Decimal},
		{Key: "gaveup", Head: "gave up", Unit: report.Count},
	}
}

// waiting returns the other libraries where callers must wait: pollers with their defaults, and
// pollers that ask so often that nobody waits for long. A short run leaves out those that add
// nothing new.
func waiting(e *Env) []string {
	if e.Short {
		return []string{"rueidislock, patient", "redsync, rueidis", "redsync, rueidis, 1 ms",
			"redislock"}
	}
	return []string{
		"rueidislock", "rueidislock, patient", "redsync, rueidis", "redsync, rueidis, 1 ms",
		"redsync, go-redis", "redsync, go-redis, 1 ms",
		"redislock", "redislock, 1 ms", "go-zero, 1 ms",
	}
}

// contendedPlot returns the plot of one lock that all contend for.
func contendedPlot(file, who, floor string) []report.Plot {
	return []report.Plot{{File: file, Title: who + ", one key: throughput", Keys: []string{"rate"},
		Jain: true,
		Label: "acquisitions per second, in terms of the " + floor +
			" (more is better); Jain's index of fairness"}}
}

// oneKey64 measures contention within a process.
func oneKey64(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "onekey64", Title: "64 goroutines, one key, one process",
		Floor: "raw scripts, local queue",
		About: "One client; all goroutines want the same lock, and release it at once. First " +
			"come, first served, nobody would wait longer than\n" +
			"64 times the mean time per acquisition: `x FIFO` is the longest wait in terms of " +
			"that.",
		Columns: contendedColumns(),
	}
	l := &loads{env: e,
		load: load{processes: 1, goroutines: 64,
			window: pick(e, 400*time.Millisecond, 2*time.Second)},
		origins: map[string]server.Origins{}}
	if err := e.takeTurns(ctx, t, append([]string{t.Floor, ours, announcing}, waiting(e)...),
		e.Rounds, l.round); err != nil {
		return nil, err
	}
	t.Plots = contendedPlot("onekey64", "64 goroutines of one process", "two-command floor")
	t.AtLeast(">= 1.7 x the two-command floor", t.Ratio(ours, t.Floor, "rate"), 1.7, report.Ratio)
	t.AtMost("one command per acquisition", t.Figure(ours, "commands"), 1.1, report.Decimal)
	t.AtMost("p99 of the wait <= 1.5 x the FIFO bound", t.Figure(ours, "bound99"), 1.5,
		report.Ratio)
	t.AtLeast("Jain >= 0.99", t.Figure(ours, "jain"), 0.99, report.Decimal)
	return t, nil
}
