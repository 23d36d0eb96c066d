package scenario

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"holdfast/bench/contest"
	"holdfast/bench/measure"
	"holdfast/bench/report"
	"holdfast/bench/server"
	"holdfast/bench/worker"
)

// quorumTask is the task of locking on several nodes until the time is up, and at least once.
type quorumTask struct {
	For  time.Duration
	Most int
}

// quorumResult is its result.
type quorumResult struct {
	Took       []int64
	Goroutines int
}

func init() {
	worker.Handle("quorum cycles", func(q quorumTask) (quorumResult, error) {
		return current.quorumCycles(q)
	})
}

func (s *session) quorumCycles(q quorumTask) (out quorumResult, err error) {
	ctx, l := s.contexts[0], s.lockers[0]
	began := time.Now()
	for range q.Most {
		start := time.Now()
		for err = l.Lock(ctx); errors.Is(err, contest.ErrGaveUp); {
			err = l.Lock(ctx)
		}
		if err == nil {
			err = l.Unlock(ctx)
		}
		if err != nil {
			return out, err
		}
		out.Took = append(out.Took, int64(time.Since(start)))
		if time.Since(began) > q.For {
			break
		}
	}
	// Goroutines that end on their own may end; those that wait for a hung node stay.
	time.Sleep(20 * time.Millisecond)
	out.Goroutines = runtime.NumGoroutine()
	return out, nil
}

// quorumSize is how many nodes a RedLock has.
const quorumSize = 5

// StartNodes starts the servers of the RedLock, if one of the scenarios needs them. Each of these
// kills one.
func (e *Env) StartNodes(ctx context.Context, wanted []Scenario) error {
	n := 0
	for _, s := range wanted {
		if s.nodes {
			n = max(n, quorumSize-1) + 1
		}
	}
	for range n {
		s, err := server.Start(ctx, worker.AnyCore)
		if err != nil {
			return err
		}
		e.Nodes = append(e.Nodes, s)
	}
	e.Up = time.Now()
	return nil
}

// StopNodes stops the servers of the RedLock.
func (e *Env) StopNodes() {
	for _, s := range e.Nodes {
		s.Stop()
	}
	e.Nodes = nil
}

// quorumLease is redsync's default. It is also the longest lease here. For that long, a node that
// was just started does not count.
const quorumLease = 8 * time.Second

// slowRound is how long a round may take. After a longer one a contestant has no further round in
// that state.
const slowRound = 2 * time.Second

// redLock measures a lock over five servers, one of which fails.
func redLock(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "redlock", Title: "RedLock over 5 nodes", Floor: "parallel quorum",
		About: "Lock and unlock by one goroutine, with a process for each contestant. One node " +
			"is stopped, so that connections stay open and\n" +
			"nothing answers; then it is killed. `goroutines` is how many more there are than " +
			"before while it hangs.",
		Columns: []report.Column{
			{Key: "up p50", Head: "all up p50", Unit: report.Duration, Ratio: true},
			{Key: "hung p50", Head: "one hung p50", Unit: report.Duration, Ratio: true},
			{Key: "dead p50", Head: "one dead p50", Unit: report.Duration, Ratio: true},
			{Key: "hung goroutines", Head: "goroutines", Unit: report.Count},
			{Key: "hung count", Head: "locks", Unit: report.Count},
		},
	}
	const mine = "holdfast redlock"
	names := []string{t.Floor, mine, "holdfast redlock, durable", "redsync, rueidis, fail fast"}
	if !e.Short && e.Delay == 0 {
		// these take ten seconds for a lock while a node hangs
		names = append(names, "redsync, rueidis", "redsync, go-redis")
	}
	cs, err := e.contestants(t, names)
	if err != nil {
		return nil, err
	}
	var ws []*worker.Process
	defer func() { e.Pool.Put(ws) }()
	for _, c := range cs {
		w, err := e.Pool.Get(1, e.program(c))
		if err != nil {
			return nil, err
		}
		ws = append(ws, w...)
	}
	setup := contest.Setup{Goroutines: 1, Lease: quorumLease, Period: quorumLease, Pipelining: true}
	nodes := e.Nodes[:quorumSize]
	for _, s := range nodes {
		if err := s.Delay(e.Delay); err != nil {
			return nil, err
		}
		setup.Addresses = append(setup.Addresses, s.Clients)
	}
	// Redis reports its uptime in whole seconds.
	time.Sleep(time.Until(e.Up.Add(quorumLease + 2*time.Second)))
	undo, err := openAll(ctx, ws, func(i int) open {
		return open{Contestant: cs[i].Name, Setup: setup, Locks: []string{e.name("redlock")}}
	})
	if err != nil {
		return nil, err
	}
	defer undo()
	for i, c := range cs {
		if c.Java {
			if err := e.warmAll(ctx, ws[i:i+1]); err != nil {
				t.Row(c).Problem(err.Error())
			}
		}
	}
	last := nodes[quorumSize-1]
	e.Nodes = slices.Concat(nodes[:quorumSize-1], e.Nodes[quorumSize:])
	defer last.Stop()
	rounds := make([][]report.Figures, len(cs))
	for i := range rounds {
		for range e.Rounds {
			rounds[i] = append(rounds[i], report.Figures{})
		}
	}
	q := quorums{env: e, table: t, contestants: cs, workers: ws, rounds: rounds,
		before: make([]int, len(cs))}
	for _, state := range []struct {
		key   string
		begin func() error
	}{
		{"up", func() error { return nil }},
		{"hung", last.Hang},
		{"dead", func() error { last.Stop(); return nil }},
	} {
		if err := state.begin(); err != nil {
			return nil, err
		}
		if err := q.state(ctx, state.key); err != nil {
			return nil, err
		}
	}
	for i, c := range cs {
		t.Row(c).Rounds = rounds[i]
	}
	most := 1.15 // of a node that fails
	if e.Delay > 0 {
		most = 1.1
	}
	t.AtMost("all up: <= 1.1 x the floor", t.Ratio(mine, t.Floor, "up p50"), 1.1, report.Ratio)
	t.AtMost(fmt.Sprintf("one hung: <= %v x the floor", most), t.Ratio(mine, t.Floor, "hung p50"),
		most, report.Ratio)
	t.AtMost(fmt.Sprintf("one dead: <= %v x the floor", most), t.Ratio(mine, t.Floor, "dead p50"),
		most, report.Ratio)
	t.AtMost("one hung: goroutines flat (at most 100 more, however many locks)",
		t.Figure(mine, "hung goroutines"), 100, report.Count)
	t.Plots = []report.Plot{{File: "redlock",
		Title: "RedLock over 5 nodes: time of lock and unlock",
		Keys:  []string{"up p50", "hung p50", "dead p50"}, Log: true,
		Label: "median, in terms of the parallel quorum (less is better): all up, one hung, one " +
			"dead"}}
	return t, nil
}

// quorums measures the contestants while the nodes are in some state.
type quorums struct {
	env         *Env
	table       *report.Table
	contestants []contest.Contestant
	workers     []*worker.Process
	rounds      [][]report.Figures
	before      []int // goroutines of each while all nodes were up
}

func (q *quorums) state(ctx context.Context, state string) error {
	window := pick(q.env, 250*time.Millisecond, time.Second)
	done := make([]bool, len(q.contestants))
	counts := make([]int, len(q.contestants))
	for round := range q.env.Rounds {
		for i, c := range q.contestants {
			if done[i] {
				continue
			}
			bounded, cancel := within(ctx, 30*time.Second)
			began := time.Now()
			out, err := worker.Call[quorumResult](bounded, q.workers[i], "quorum cycles",
				quorumTask{For: window, Most: 100_000})
			cancel()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				q.table.Row(c).Problem(fmt.Sprintf("%s: %v", state, err))
				done[i] = errors.Is(err, worker.ErrHung)
				continue
			}
			done[i] = time.Since(began) > slowRound
			figures := q.rounds[i][round]
			figures[state+" p50"] = float64(measure.Quantile(out.Took, 0.5))
			figures[state+" p99"] = float64(measure.Quantile(out.Took, 0.99))
			if state == "up" {
				q.before[i] = out.Goroutines
			}
			counts[i] += len(out.Took)
			// These count all rounds so far, so only the last is kept; the median of one value is
			// that value.
			for _, earlier := range q.rounds[i][:round] {
				delete(earlier, state+" goroutines")
				delete(earlier, state+" count")
			}
			if c.Java {
				q.table.Row(c).Note("goroutines: a JVM has threads, of which Redisson starts a " +
					"fixed number")
			} else {
				figures[state+" goroutines"] = float64(out.Goroutines - q.before[i])
			}
			figures[state+" count"] = float64(counts[i])
			q.env.Log("%s: %s: %s, round %d of %d", q.table.Scenario, c.Name, state, round+1,
				q.env.Rounds)
		}
	}
	return nil
}
