package scenario

import (
	"context"
	"time"

	"holdfast/bench/contest"
	"holdfast/bench/report"
	"holdfast/bench/server"
)

// processes64 measures contention between processes.
func processes64(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "processes64", Title: "64 processes, one key", Floor: "queue in Redis",
		About: "64 processes with a client each, and one goroutine; all want the same lock, " +
			"and release it at once.",
		Columns: contendedColumns(),
	}
	l := &loads{env: e,
		load: load{processes: 64, goroutines: 1,
			window: pick(e, 600*time.Millisecond, 3*time.Second)},
		origins: map[string]server.Origins{}}
	if err := e.takeTurns(ctx, t, append([]string{t.Floor, ours}, waiting(e)...),
		e.Rounds, l.round); err != nil {
		return nil, err
	}
	t.Plots = contendedPlot("processes64", "64 processes", "queue in Redis")
	t.AtLeast(">= 0.9 x the queue in Redis", t.Ratio(ours, t.Floor, "rate"), 0.9, report.Ratio)
	t.AtMost("<= 35 us of the server per acquisition", t.Figure(ours, "server"), 35e3,
		report.Duration)
	t.AtMost("<= 2.5 commands per acquisition", t.Figure(ours, "commands"), 2.5, report.Decimal)
	t.AtLeast("Jain >= 0.98", t.Figure(ours, "jain"), 0.98, report.Decimal)
	t.AtMost("longest wait <= 2 x the FIFO bound", t.Figure(ours, "boundmax"), 2, report.Ratio)
	return t, nil
}

// processes4x16 measures contention within and between processes.
func processes4x16(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "processes4x16", Title: "4 processes with 16 goroutines each, one key",
		Floor: "queue in Redis",
		About: "A client in each process; all goroutines want the same lock, and release it at " +
			"once. `least share` and `most share` are what the\n" +
			"processes got that got least and most, in terms of an equal share.",
		Columns: append(contendedColumns(),
			report.Column{Key: "least", Head: "least share", Unit: report.Decimal},
			report.Column{Key: "most", Head: "most share", Unit: report.Decimal}),
	}
	l := &loads{env: e,
		load: load{processes: 4, goroutines: 16,
			window: pick(e, 500*time.Millisecond, 2*time.Second)},
		origins: map[string]server.Origins{}}
	if err := e.takeTurns(ctx, t, append([]string{t.Floor, ours}, waiting(e)...),
		e.Rounds, l.round); err != nil {
		return nil, err
	}
	t.Plots = contendedPlot("processes4x16", "4 processes with 16 goroutines each",
		"queue in Redis")
	t.AtLeast(">= 2 x the queue in Redis", t.Ratio(ours, t.Floor, "rate"), 2, report.Ratio)
	best := t.Best("rate", starvesNobody)
	fairest := t.Best("jain", func(*report.Row) bool { return true })
	if best != "" {
		t.AtLeast(">= 1.3 x the best other that does not starve ("+best+")",
			t.Ratio(ours, best, "rate"), 1.3, report.Ratio)
	} else if fairest != "" {
		// A Jain's index below 0.9 means that some starve. If that is so for all, the one to beat
		// is the fairest.
		t.AtLeast(">= 1.3 x the other that starves least ("+fairest+"); all starve some",
			t.Ratio(ours, fairest, "rate"), 1.3, report.Ratio)
	}
	t.AtLeast("no process below 0.9 of an equal share", t.Figure(ours, "least"), 0.9,
		report.Decimal)
	t.AtMost("no process above 1.1 of an equal share", t.Figure(ours, "most"), 1.1, report.Decimal)
	return t, nil
}

// starvesNobody reports whether a row is another library where all got about the same.
func starvesNobody(r *report.Row) bool {
	return r.Part == contest.Other && r.Figure("jain") >= 0.9
}
