// Package scenario has what is measured, one file for each scenario. Contestants take turns: one
// round of each, then the next round, so that a machine that is slow for a while is slow for all.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"holdfast/bench/contest"
	"holdfast/bench/contestants"
	"holdfast/bench/report"
	"holdfast/bench/server"
	"holdfast/bench/worker"
)

// Env is what scenarios run in. Server is that of the running scenario.
type Env struct {
	Short  bool
	Rounds int
	Who    *regexp.Regexp // contestants besides the floors; nil is all
	Server *server.Server
	Delay  time.Duration // of each way through the network to the servers of the running scenario
	// of the RedLock; started early, since nodes that have just started do not count
	Nodes []*server.Server
	Up    time.Time // when Nodes were started
	Pool  *worker.Pool
	Java  *worker.Program // has the clients in Java; nil if there is none
	Log   func(format string, args ...any)

	names  int
	inJava []string // contestants in Java of the running scenario
}

// Scenario is one thing to measure.
type Scenario struct {
	Key   string
	run   func(context.Context, *Env) (*report.Table, error)
	java  []string      // contestants in Java
	quick bool          // a short run, which has no time for more, includes the first of java
	far   bool          // runs a second time, over a slow network
	nodes bool          // needs Env.Nodes
	Delay time.Duration // of each way through the network; 0 on the loopback interface
}

// All are the scenarios in the order in which they run.
var All = withNetwork([]Scenario{
	{Key: "uncontended", run: uncontended, java: []string{redisson}, far: true},
	{Key: "keys64", run: keys64, java: []string{redisson}, far: true},
	{Key: "onekey64", run: oneKey64, java: []string{redisson, redissonFair}, quick: true,
		far: true},
	{Key: "processes64", run: processes64, java: []string{redisson}},
	{Key: "processes4x16", run: processes4x16, java: []string{redisson, redissonFair}, far: true},
	{Key: "handover", run: handover, java: []string{redisson}, far: true},
	{Key: "waiters", run: waiters},
	{Key: "watchdog", run: watchdog},
	{Key: "holds", run: holds},
	{Key: "contenders", run: contenders},
	{Key: "cluster", run: cluster},
	{Key: "redlock", run: redLock, java: []string{"redisson redlock"}, nodes: true, far: true},
})

// withNetwork adds the scenarios over a network whose round trip is a millisecond, each behind the
// one without.
func withNetwork(near []Scenario) (all []Scenario) {
	for _, s := range near {
		all = append(all, s)
		if s.far {
			s.Key, s.java, s.quick, s.Delay = s.Key+"-1ms", nil, false, time.Millisecond/2
			all = append(all, s)
		}
	}
	return all
}

// Start starts a server behind the network of the running scenario.
func (e *Env) Start(ctx context.Context, core int) (*server.Server, error) {
	s, err := server.Start(ctx, core)
	if err != nil {
		return nil, err
	}
	if err := s.Delay(e.Delay); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Run runs the scenario on the server of e.
func (s Scenario) Run(ctx context.Context, e *Env) (*report.Table, error) {
	e.inJava = nil
	if e.Java != nil {
		e.inJava = s.wantsJava(e)
	}
	if e.Short && s.Delay > 0 {
		defer func(rounds int) { e.Rounds = rounds }(e.Rounds)
		e.Rounds = (e.Rounds + 1) / 2
	}
	t, err := s.run(ctx, e)
	if err == nil && s.Delay > 0 {
		t.Scenario, t.Title, t.Plots = s.Key, t.Title+", over a network", nil
		t.About += "\nEach way through the network takes 0.5 ms."
	}
	return t, err
}

// WantsJava reports whether contestants in Java take part in any of the scenarios, if they exist.
func (e *Env) WantsJava(scenarios []Scenario) bool {
	return slices.ContainsFunc(scenarios, func(s Scenario) bool { return len(s.wantsJava(e)) > 0 })
}

func (s Scenario) wantsJava(e *Env) (names []string) {
	for _, name := range s.java {
		if (!e.Short || s.quick && name == redisson) && (e.Who == nil || e.Who.MatchString(name)) {
			names = append(names, name)
		}
	}
	return names
}

// program returns the program of a contestant's workers.
func (e *Env) program(c contest.Contestant) *worker.Program {
	if c.Java {
		return e.Java
	}
	return nil
}

// name returns the name of a lock that was not used before. What a killed worker leaves behind
// affects no other.
func (e *Env) name(of string) string {
	e.names++
	return "bench:" + of + ":" + strconv.Itoa(e.names)
}

// pick returns a in a short run, and b in a long one.
func pick[T any](e *Env, a, b T) T {
	if e.Short {
		return a
	}
	return b
}

// contestants returns the wanted contestants of the given names and those of the scenario in Java,
// in the order of the table.
func (e *Env) contestants(t *report.Table, names []string) ([]contest.Contestant, error) {
	var cs []contest.Contestant
	for _, name := range slices.Concat(names, e.inJava) {
		c, err := contestants.Named(name)
		if err != nil {
			return nil, err
		}
		if e.Who != nil && c.Part != contest.Floor && !e.Who.MatchString(c.Name) {
			continue
		}
		t.Row(c)
		cs = append(cs, c)
	}
	return cs, nil
}

// measureRound measures one contestant in round i.
type measureRound func(
	ctx context.Context, c entrant, row *report.Row, i int,
) (report.Figures, error)

// takeTurns measures the contestants in so many rounds each, interleaved, with contexts that can be
// cancelled.
func (e *Env) takeTurns(
	ctx context.Context, t *report.Table, names []string, rounds int, round measureRound,
) error {
	return e.takeTurnsWith(ctx, t, names, rounds, round, cancellable)
}

// takeTurnsWith measures the contestants in so many rounds each with each kind of contexts,
// interleaved. A round that fails is a problem of its row, and not of the run. A contestant that
// hung is not tried again.
func (e *Env) takeTurnsWith(
	ctx context.Context, t *report.Table, names []string, rounds int, round measureRound,
	kinds ...contexts,
) error {
	cs, err := e.contestants(t, names)
	if err != nil {
		return err
	}
	es, hung := entrants(t, cs, kinds...), map[string]bool{}
	for i := range rounds {
		for _, c := range es {
			if hung[c.Name] {
				continue
			}
			row := t.Row(c.Contestant)
			figures, err := round(ctx, c, row, i)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				row.Problem(c.contexts.key(fmt.Sprintf("round %d: %v", i+1, err)))
				hung[c.Name] = errors.Is(err, worker.ErrHung)
				figures = nil // the rounds of all rows stay beside each other
			}
			c.add(row, i, figures)
			e.Log("%s: %s: round %d of %d", t.Scenario, c.label(), i+1, rounds)
		}
	}
	return nil
}

// within bounds what should take d. What takes much longer hangs.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d+10*time.Second)
}

const (
	ours       = "holdfast"
	announcing = "holdfast, announcing"
	fair       = "holdfast, fair"

	rawNear = "raw scripts, no network"

	redisson     = "redisson"
	redissonFair = "redisson, fair"

	noAllocs = "allocs: a JVM does not count them"
)
