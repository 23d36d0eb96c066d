package scenario

import (
	"context"
	"fmt"
	"time"

	"holdfast/bench/contestants"
	"holdfast/bench/report"
	"holdfast/bench/server"
	"holdfast/bench/worker"
)

// holds measures how the costs of held locks grow with their number and with the network.
func holds(ctx context.Context, e *Env) (*report.Table, error) {
	lease := pick(e, 3*time.Second, 30*time.Second) // 30 s is the default
	t := &report.Table{
		Scenario: "holds", Title: "Held locks in one client",
		About: "All figures but the first are for a hold, the last two for a renewal of it. The " +
			"lease is " + lease.String() + ". `memory` is what the client needs\nbesides the " +
			"`Lock`. `late` is by how much the most belated renewal was late, among 1,000 holds.",
		Columns: []report.Column{
			{Key: "calls", Head: "scripts per period", Unit: report.Count},
			{Key: "memory", Head: "memory", Unit: report.Bytes},
			{Key: "late", Head: "late", Unit: report.Duration},
			{Key: "lost", Head: "lost", Unit: report.Count},
			{Key: "client", Head: "client", Unit: report.Duration},
			{Key: "server", Head: "server", Unit: report.Duration},
		},
	}
	c, err := contestants.Named(ours)
	if err != nil {
		return nil, err
	}
	numbers := pick(e, []int{1000}, []int{1000, 10_000, 100_000})
	roundTrips := []time.Duration{0, 10 * time.Millisecond, 100 * time.Millisecond}
	for _, roundTrip := range pick(e, roundTrips[:1], roundTrips) {
		e.Delay = roundTrip / 2
		e.Server, err = e.Start(ctx, worker.AnyCore)
		if err != nil {
			return nil, err
		}
		defer e.Server.Stop()
		for _, n := range numbers {
			row := c
			row.Name = report.Count.Format(float64(n)) + " holds"
			if roundTrip > 0 {
				row.Name += fmt.Sprintf(", over %v", roundTrip)
			}
			figures, err := e.renewals(ctx, c,
				holding{held: n, looks: 1000, lease: lease, periods: 1})
			if err != nil {
				t.Row(row).Problem(err.Error())
			}
			t.Row(row).Rounds = []report.Figures{figures}
			e.Log("%s: %s", t.Scenario, row.Name)
		}
	}
	return t, nil
}

// contenders measures how the costs of waiting for one lock grow with the waiters and their
// processes.
func contenders(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "contenders", Title: "One key, more and more callers",
		About: "As `processes4x16`, with other numbers. A fair lock's hand-over looks through its " +
			"queue.",
		Columns: contendedColumns(),
	}
	t.Columns[0].Ratio = false // there is no floor
	shapes := []struct {
		who                   string
		processes, goroutines int
	}{
		{ours, 1, 10}, {ours, 1, 100}, {ours, 1, 1000},
		{ours, 8, 2}, {ours, 8, 16}, {ours, 8, 125},
		{ours, 64, 1}, {ours, 64, 16},
		{fair, 4, 3}, {fair, 4, 25}, {fair, 4, 250}, {fair, 4, 2500},
	}
	for _, of := range pick(e, shapes[9:10], shapes) {
		c, err := contestants.Named(of.who)
		if err != nil {
			return nil, err
		}
		row := c
		row.Name = fmt.Sprintf("%s, %d x %d", of.who, of.processes, of.goroutines)
		l := &loads{env: e, origins: map[string]server.Origins{},
			load: load{processes: of.processes, goroutines: of.goroutines,
				window: pick(e, 500*time.Millisecond, 2*time.Second)}}
		for i := range e.Rounds {
			figures, err := l.round(ctx, entrant{c, cancellable}, t.Row(row), i)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				t.Row(row).Problem(err.Error())
				break
			}
			t.Row(row).Rounds = append(t.Row(row).Rounds, figures)
		}
		e.Log("%s: %s", t.Scenario, row.Name)
	}
	return t, nil
}
