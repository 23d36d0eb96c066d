package scenario

import (
	"context"
	"fmt"
	"time"

	"holdfast/bench/contestants"
	"holdfast/bench/report"
	"holdfast/bench/server"
)

// cluster measures keys64 on clusters of more and more masters, beside raw scripts on the same one.
func cluster(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "cluster", Title: "64 goroutines, a key each, on a cluster",
		About: "As `keys64`. The masters share the cores with the client, so look at the ratios.",
		Columns: []report.Column{
			{Key: "rate", Head: "cycles/s", Unit: report.Count},
			{Key: "ratio", Head: "x raw scripts", Unit: report.Ratio},
			{Key: "cycle99", Head: "p99", Unit: report.Duration},
			{Key: "allocs", Head: "allocs", Unit: report.Decimal},
		},
	}
	for _, masters := range pick(e, []int{3}, []int{1, 3, 6}) {
		nodes, err := server.StartCluster(ctx, masters)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			defer n.Stop()
		}
		e.Server = nodes[0]
		l := &loads{env: e, origins: map[string]server.Origins{},
			load: load{processes: 1, goroutines: 64, ownKeys: true,
				window: pick(e, 400*time.Millisecond, 2*time.Second)}}
		for i := range e.Rounds {
			floor := 0.0
			for _, who := range []string{"raw scripts", ours} {
				c, err := contestants.Named(who)
				if err != nil {
					return nil, err
				}
				row := c
				row.Name = fmt.Sprintf("%s, %d masters", who, masters)
				figures, err := l.round(ctx, entrant{c, cancellable}, t.Row(row), i)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err != nil {
					t.Row(row).Problem(err.Error())
					continue
				}
				if who != ours {
					floor = figures["rate"]
				}
				figures["ratio"] = figures["rate"] / floor
				t.Row(row).Rounds = append(t.Row(row).Rounds, figures)
			}
		}
		e.Log("%s: %d masters", t.Scenario, masters)
	}
	return t, nil
}
