package scenario

import (
	"context"
	"math"
	"time"

	"holdfast/bench/contest"
	"holdfast/bench/measure"
	"holdfast/bench/report"
	"holdfast/bench/server"
	"holdfast/bench/worker"
)

// cycled is the result of a number of cycles.
type cycled struct {
	Took    []int64
	Mallocs uint64
}

func init() {
	worker.Handle("cycles", func(n int) (cycled, error) { return current.cycles(n) })
}

func (s *session) cycles(n int) (out cycled, err error) {
	out.Took = make([]int64, 0, n)
	ctx, l := s.contexts[0], s.lockers[0]
	before := measure.MemoryNow().Mallocs
	for range n {
		start := time.Now()
		if err := l.Lock(ctx); err != nil {
			return out, err
		}
		if err := l.Unlock(ctx); err != nil {
			return out, err
		}
		out.Took = append(out.Took, int64(time.Since(start)))
	}
	out.Mallocs = measure.MemoryNow().Mallocs - before
	return out, nil
}

// chunk is how many cycles one contestant runs before the next: so few that a slow moment hits all.
const chunk, farChunk = 200, 20

// uncontended measures a lock without contention, acquired by one goroutine. Client and server
// share a core: otherwise it would mostly measure how long the other core takes to wake up. Each
// contestant has its own process on that core, so that none collects another's garbage. While one
// runs, the others wait for input.
func uncontended(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "uncontended", Title: "Uncontended lock and unlock, one goroutine",
		Floor: "raw scripts",
		About: "Client and server on one core. Contestants take turns after some cycles.",
		Columns: []report.Column{
			{Key: "p50", Head: "p50", Unit: report.Duration, Ratio: true},
			{Key: "p99", Head: "p99", Unit: report.Duration, Ratio: true},
			{Key: "commands", Head: "commands", Unit: report.Decimal},
		},
	}
	names := []string{"raw scripts", ours, "rueidislock", "redsync, rueidis", "redsync, go-redis",
		"redislock", "go-zero, 5 ms"}
	kinds := []contexts{cancellable, background}
	if e.Delay > 0 {
		names, kinds = append([]string{rawNear}, pick(e, names[:2], names)...), kinds[:1]
	} else {
		t.About += "\n" + aboutBackground
		t.Columns = append(t.Columns,
			report.Column{Key: "allocs", Head: "allocs", Unit: report.Decimal})
		t.Columns = besideBackground(t.Columns, "p50", "p99", "allocs")
	}
	cs, err := e.contestants(t, names)
	if err != nil {
		return nil, err
	}
	core := worker.LastCore()
	s, err := e.Start(ctx, core)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	kept := map[string]*worker.Process{}
	defer func() {
		for _, w := range kept {
			w.Stop()
		}
	}()
	es := entrants(t, cs, kinds...)
	for i := range e.Rounds {
		if err := uncontendedRound(ctx, e, t, i, es, s, core, kept); err != nil {
			return nil, err
		}
		e.Log("%s: round %d of %d", t.Scenario, i+1, e.Rounds)
	}
	t.Plots = []report.Plot{{
		File: "uncontended", Title: "Uncontended lock and unlock: time",
		Keys: []string{"p50", background.key("p50")},
		Label: "median, in terms of the raw scripts' (less is better): " +
			"contexts that can be cancelled, Background",
	}}
	t.AtMost("2 commands", t.Figure(ours, "commands"), 2.01, report.Decimal)
	if e.Delay > 0 {
		t.AtMost("p50 <= 1.05 x the floor", t.Ratio(ours, t.Floor, "p50"), 1.05, report.Ratio)
		added := (t.Figure(t.Floor, "p50") - t.Figure(rawNear, "p50")) / 2
		t.AtMost("the network adds 1 ms to a command, +- 10 %: off by",
			math.Abs(added-float64(2*e.Delay)), float64(2*e.Delay)/10, report.Duration)
		return t, nil
	}
	t.AtMost("p50 <= 1.15 x the floor", t.Ratio(ours, t.Floor, "p50"), 1.15, report.Ratio)
	t.AtMost("Background: p50 <= 1.05 x the floor",
		t.Ratio(ours, t.Floor, background.key("p50")), 1.05, report.Ratio)
	t.AtMost("Background: p99 <= 1.15 x the floor",
		t.Ratio(ours, t.Floor, background.key("p99")), 1.15, report.Ratio)
	return t, nil
}

// uncontendedRound starts a worker for each entrant. Only those of another program are kept for the
// next round, by contestant: a JVM has become quicker by then.
func uncontendedRound(
	ctx context.Context, e *Env, t *report.Table, round int, es []entrant,
	s *server.Server, core int, kept map[string]*worker.Process,
) error {
	chunks := pick(e, 15, 30)
	chunk := chunk
	if e.Delay > 0 {
		chunk = farChunk
	}
	ctx, cancel := within(ctx, time.Duration(chunks)*time.Second)
	defer cancel()
	conn, err := server.Dial(s.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	ws := make([]*worker.Process, 0, len(es))
	defer func() {
		for _, w := range ws {
			if !w.Foreign() {
				w.Stop()
			}
		}
	}()
	took, figures := make([][]int64, len(es)), make([]report.Figures, len(es))
	for i, c := range es {
		w := kept[c.Name]
		if w == nil {
			w, err = worker.Start(core, e.program(c.Contestant))
			if err != nil {
				return err
			}
		}
		ws = append(ws, w)
		if w.Foreign() {
			kept[c.Name] = w
		}
		o := open{Contestant: c.Name, Locks: []string{e.name("uncontended")}, Contexts: c.contexts,
			Setup: contest.Setup{Addresses: []string{s.Clients}, Goroutines: 1,
				Lease: 30 * time.Second}}
		if c.Name == rawNear {
			o.Setup.Addresses = []string{s.Address}
		}
		if _, err := worker.Call[nothing](ctx, w, "open", o); err != nil {
			return err
		}
		if c.Java {
			if err := e.warmAll(ctx, ws[i:]); err != nil {
				return err
			}
			t.Row(c.Contestant).Note(noAllocs)
		}
		// The commands are counted here, where the server may be watched.
		if _, err := worker.Call[cycled](ctx, w, "cycles", chunk); err != nil {
			return err
		}
		watch, err := server.Watch(s.Address)
		if err != nil {
			return err
		}
		if err := conn.ResetCalls(); err != nil {
			return err
		}
		if _, err := worker.Call[cycled](ctx, w, "cycles", chunk); err != nil {
			return err
		}
		calls, err := conn.Calls()
		if err != nil {
			return err
		}
		sent, _ := watch.Stop().Clients(calls)
		figures[i] = report.Figures{"commands": sent / float64(chunk)}
	}
	for range chunks {
		for i, w := range ws {
			out, err := worker.Call[cycled](ctx, w, "cycles", chunk)
			if err != nil {
				return err
			}
			took[i] = append(took[i], out.Took...)
			if !es[i].Java {
				figures[i]["allocs"] += float64(out.Mallocs) / float64(chunks*chunk)
			}
		}
	}
	for i, c := range es {
		if _, err := worker.Call[nothing](ctx, ws[i], "close", nothing{}); err != nil {
			return err
		}
		figures[i]["p50"] = float64(measure.Quantile(took[i], 0.5))
		figures[i]["p99"] = float64(measure.Quantile(took[i], 0.99))
		c.add(t.Row(c.Contestant), round, figures[i])
	}
	return nil
}
