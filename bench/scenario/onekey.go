package scenario

import (
	"context"
	"fmt"
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

// waiting returns what holdfast is compared with where callers must wait: holdfast without
// hand-overs, pollers with their defaults, and pollers that ask so often that nobody waits for
// long. A short run leaves out those that add nothing new.
func waiting(e *Env) []string {
	switch {
	case e.Short && e.Delay > 0:
		return []string{"redislock, 5 ms"}
	case e.Short:
		return []string{announcing, "rueidislock, patient", "redsync, rueidis",
			"redsync, rueidis, 1 ms", "redislock, 5 ms"}
	}
	return []string{
		announcing, "rueidislock", "rueidislock, patient",
		"redsync, rueidis", "redsync, rueidis, 1 ms", "redsync, rueidis, 5 ms",
		"redsync, go-redis", "redsync, go-redis, 5 ms",
		"redislock", "redislock, 1 ms", "redislock, 5 ms", "go-zero, 5 ms",
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
			window: pick(e, 500*time.Millisecond, 2*time.Second)},
		origins: map[string]server.Origins{}}
	if err := e.takeTurns(ctx, t, append([]string{t.Floor, ours}, waiting(e)...),
		e.Rounds, l.round); err != nil {
		return nil, err
	}
	t.Plots = contendedPlot("onekey64", "64 goroutines of one process", "two-command floor")
	least := 4.0
	if e.Delay > 0 {
		least = 10
	}
	t.AtLeast(fmt.Sprintf(">= %v x the two-command floor", least), t.Ratio(ours, t.Floor, "rate"),
		least, report.Ratio)
	t.AtMost("<= 0.15 commands per acquisition", t.Figure(ours, "commands"), 0.15, report.Decimal)
	t.AtMost("<= 4 allocations per acquisition", t.Figure(ours, "allocs"), 4.05, report.Decimal)
	t.AtLeast("Jain >= 0.99", t.Figure(ours, "jain"), 0.99, report.Decimal)
	t.AtMost("longest wait <= 2 x the FIFO bound", t.Figure(ours, "boundmax"), 2, report.Ratio)
	return t, nil
}
