package scenario

import (
	"context"
	"fmt"
	"time"

	"holdfast/bench/report"
	"holdfast/bench/server"
)

// keys64 measures a service that locks something else in each request.
func keys64(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "keys64", Title: "64 goroutines, a key each", Floor: "raw scripts",
		About: "One process and one client; " +
			"each goroutine takes and releases a lock that nobody else wants.",
		Columns: []report.Column{
			{Key: "rate", Head: "cycles/s", Unit: report.Count, Ratio: true},
			{Key: "cycle50", Head: "p50", Unit: report.Duration},
			{Key: "cycle99", Head: "p99", Unit: report.Duration},
			{Key: "commands", Head: "commands", Unit: report.Decimal},
			{Key: "server", Head: "server", Unit: report.Duration},
			{Key: "allocs", Head: "allocs", Unit: report.Decimal},
			{Key: "jain", Head: "Jain", Unit: report.Decimal},
		},
	}
	kinds := []contexts{cancellable, background}
	if e.Delay > 0 {
		kinds = kinds[:1]
	} else {
		t.About += "\n" + aboutBackground
		t.Columns = besideBackground(t.Columns, "rate", "allocs")
	}
	l := &loads{env: e,
		load: load{processes: 1, goroutines: 64, ownKeys: true,
			window: pick(e, 400*time.Millisecond, 2*time.Second)},
		origins: map[string]server.Origins{}}
	names := []string{"raw scripts", "raw scripts, batched", ours, "holdfast, batched",
		"redsync, rueidis", "redsync, rueidis, batched"}
	if e.Delay == 0 {
		names = append(names, "holdfast, metrics", "holdfast, metrics and few traces",
			"holdfast, metrics and traces")
	}
	if !e.Short {
		names = append(names, "rueidislock", "rueidislock, patient, batched",
			"redsync, go-redis", "redsync, go-redis, batched", "redislock", "redislock, batched",
			"go-zero, 5 ms")
	}
	err := e.takeTurnsWith(ctx, t, names, e.Rounds, l.round, kinds...)
	if err != nil {
		return nil, err
	}
	t.Plots = []report.Plot{{
		File: "keys64", Title: "64 goroutines, a key each: throughput",
		Keys: []string{"rate", background.key("rate")},
		Label: "cycles per second, in terms of the raw scripts' (more is better): " +
			"contexts that can be cancelled, Background",
	}}
	least := 0.87
	if e.Delay > 0 {
		least = 0.95
	}
	t.AtLeast(fmt.Sprintf(">= %v x the floor", least), t.Ratio(ours, t.Floor, "rate"), least,
		report.Ratio)
	t.AtLeast(fmt.Sprintf("batched: >= %v x the floor", least),
		t.Ratio("holdfast, batched", "raw scripts, batched", "rate"), least, report.Ratio)
	if e.Delay > 0 {
		return t, nil
	}
	t.AtLeast("ahead of redsync", t.Ratio(ours, "redsync, rueidis", "rate"), 1, report.Ratio)
	t.AtLeast("batched: ahead of redsync",
		t.Ratio("holdfast, batched", "redsync, rueidis, batched", "rate"), 1, report.Ratio)
	t.AtMost("<= 7 allocations per cycle", t.Figure(ours, "allocs"), 7.05, report.Decimal)
	// OpenTelemetry may cost 1.3 x the time, which is 0.77 x the rate.
	t.AtLeast("with metrics and few traces: >= 0.77 x holdfast",
		t.Ratio("holdfast, metrics and few traces", ours, "rate"), 1/1.3, report.Ratio)
	t.AtLeast("with metrics and all traces: >= 0.77 x holdfast",
		t.Ratio("holdfast, metrics and traces", ours, "rate"), 1/1.3, report.Ratio)
	t.AtMost("p99 <= 2.5 ms", t.Figure(ours, "cycle99"), 2.5e6, report.Duration)
	t.AtLeast("Background: >= 0.95 x the floor",
		t.Ratio(ours, t.Floor, background.key("rate")), 0.95, report.Ratio)
	t.AtMost("Background: <= 6 allocations per cycle",
		t.Figure(ours, background.key("allocs")), 6.05, report.Decimal)
	return t, nil
}
