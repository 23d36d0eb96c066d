// Package scenario has what is measured, a file for each. A scenario has contestants take turns: one round of each, then the
// next round, so that a machine that is slower for a while is so for all.
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
	"holdfast/bench/report"
	"holdfast/bench/rivals"
	"holdfast/bench/server"
	"holdfast/bench/worker"
)

// Env is what scenarios run in. Its server belongs to whichever scenario runs.
type Env struct {
	Short  bool
	Rounds int
	Who    *regexp.Regexp // contestants beside the floors; nil is everybody
	Server *server.Server
	Nodes  []*server.Server // of the RedLock; started early, since nodes that were started a moment ago are not counted
	Up     time.Time        // when they were
	Pool   *worker.Pool
	Java   *worker.Program // has the clients in Java; nil if it is not there
	Log    func(format string, args ...any)

	names  int
	inJava []string // rivals of the scenario that runs
}

// Scenario is one of them.
type Scenario struct {
	Key   string
	run   func(context.Context, *Env) (*report.Table, error)
	java  []string // rivals in Java
	quick bool     // the first of them is in a short run too, which has no time for more
}

// All are the scenarios in the order in which they run.
var All = []Scenario{
	{Key: "uncontended", run: uncontended, java: []string{redisson}},
	{Key: "keys64", run: keys64, java: []string{redisson}},
	{Key: "onekey64", run: oneKey64, java: []string{redisson, redissonFair}, quick: true},
	{Key: "processes64", run: processes64, java: []string{redisson}},
	{Key: "processes4x16", run: processes4x16, java: []string{redisson, redissonFair}},
	{Key: "handover", run: handover, java: []string{redisson}},
	{Key: "waiters", run: waiters},
	{Key: "watchdog", run: watchdog},
	{Key: "redlock", run: redLock, java: []string{"redisson redlock"}},
}

// Run runs the scenario on the server of e.
func (s Scenario) Run(ctx context.Context, e *Env) (*report.Table, error) {
	e.inJava = nil
	if e.Java != nil {
		e.inJava = s.wantsJava(e)
	}
	return s.run(ctx, e)
}

// WantsJava tells whether rivals in Java take part in any of the scenarios if they are there.
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

// program is what a contestant's workers run.
func (e *Env) program(c contest.Contestant) *worker.Program {
	if c.Java {
		return e.Java
	}
	return nil
}

// name makes the name of a lock that was not used before: what a killed worker left behind disturbs nobody.
func (e *Env) name(of string) string {
	e.names++
	return "bench:" + of + ":" + strconv.Itoa(e.names)
}

// pick is a in a short run, and b in a long one.
func pick[T any](e *Env, a, b T) T {
	if e.Short {
		return a
	}
	return b
}

// contestants are those with the given names that are wanted, and the scenario's in Java, in a table's order.
func (e *Env) contestants(t *report.Table, names []string) ([]contest.Contestant, error) {
	var cs []contest.Contestant
	for _, name := range slices.Concat(names, e.inJava) {
		c, err := rivals.Named(name)
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

// takeTurns gives each contestant so many rounds, interleaved, with contexts that can be cancelled.
func (e *Env) takeTurns(
	ctx context.Context, t *report.Table, names []string, rounds int, round measureRound,
) error {
	return e.takeTurnsWith(ctx, t, names, rounds, round, cancellable)
}

// takeTurnsWith gives each contestant so many rounds with each kind of contexts, interleaved. A
// round that fails is a problem of its row, and not of the run; a contestant that hung is not tried
// again.
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

// within bounds what should take for d: whoever takes much longer hangs.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d+10*time.Second)
}

const (
	ours       = "holdfast"
	announcing = "holdfast, announcing"

	redisson     = "redisson"
	redissonFair = "redisson, fair"

	noAllocs = "allocs: a JVM does not count them"
)
