package scenario

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"holdfast/bench/contest"
	"holdfast/bench/report"
	"holdfast/bench/server"
	"holdfast/bench/worker"
)

// watchdogLease is the lease of the renewed locks: short, so that a run has several periods.
const watchdogLease = 3 * time.Second

// keyOf returns the key of a lock in Redis, whose TTL is read.
func keyOf(contestant, name string) string {
	if strings.HasPrefix(contestant, "rueidislock") {
		return "rueidislock:0:" + name
	}
	return name
}

// watchdog measures many locks that are held for long.
func watchdog(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "watchdog", Title: "10,000 locks held by the watchdog",
		About: "The lease is 3 s, and renewed every third of it; a period is what it takes to " +
			"renew each once. `late` is\n" +
			"by how much the most belated renewal of all was late, seen from what its key had " +
			"left: it should never be less than two thirds of the lease.",
		Columns: []report.Column{
			{Key: "calls", Head: "scripts per period", Unit: report.Count},
			{Key: "late", Head: "late", Unit: report.Duration},
			{Key: "lost", Head: "lost", Unit: report.Count},
			{Key: "sweeps", Head: "looks", Unit: report.Count},
		},
	}
	periods := pick(e, 3, 6)
	who := []string{ours, "rueidislock, patient"}
	err := e.takeTurns(ctx, t, who, pick(e, 1, min(e.Rounds, 3)), func(
		ctx context.Context, c entrant, _ *report.Row, _ int,
	) (report.Figures, error) {
		return e.watchdogRound(ctx, c.Contestant, periods)
	})
	if err != nil {
		return nil, err
	}
	t.AtMost("100 calls per period", t.Figure(ours, "calls"), 101, report.Count)
	t.AtMost("no renewal late by more than lease/10", t.Figure(ours, "late"),
		float64(watchdogLease/10), report.Duration)
	t.AtMost("no lock lost", t.Figure(ours, "lost"), 0, report.Count)
	return t, nil
}

func (e *Env) watchdogRound(
	ctx context.Context, c contest.Contestant, periods int,
) (report.Figures, error) {
	const held, period = 10_000, watchdogLease / 3
	ctx, cancel := within(ctx, 20*time.Second)
	defer cancel()
	ws, err := e.Pool.Get(1, nil)
	if err != nil {
		return nil, err
	}
	defer e.Pool.Put(ws)
	e.names++
	o := open{Contestant: c.Name,
		Setup: contest.Setup{Addresses: []string{e.Server.Clients}, Goroutines: 64,
			Period: watchdogLease}}
	look := make([][]string, 0, held)
	for i := range held {
		name := fmt.Sprintf("bench:watchdog:%d:%d", e.names, i)
		o.Locks = append(o.Locks, name)
		look = append(look, []string{"PTTL", keyOf(c.Name, name)})
	}
	undo, err := openAll(ctx, ws, func(int) open { return o })
	if err != nil {
		return nil, err
	}
	defer undo()
	if _, err := worker.Call[nothing](ctx, ws[0], "lock all", nothing{}); err != nil {
		return nil, err
	}
	conn, err := server.Dial(e.Server.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	time.Sleep(period * 3 / 2) // by now all have been renewed once
	// A period is the time in which each lock is renewed once more. By the clock it is shorter than
	// a third of the lease by a random part, and a window of some periods would have one more or
	// less at its ends.
	var before []int
	least, lost, sweeps, renewed := math.MaxInt, 0, 0, 0
	for began := time.Now(); ; time.Sleep(30 * time.Millisecond) {
		left, err := leases(conn, look)
		if err != nil {
			return nil, err
		}
		if before == nil {
			if err := conn.ResetCalls(); err != nil {
				return nil, err
			}
			before = left
		}
		sweeps++
		missing := 0
		for i, ms := range left {
			if ms < 0 {
				missing++
			} else {
				least = min(least, ms)
			}
			if ms > before[i] {
				renewed++
			}
		}
		before = left
		lost = max(lost, missing)
		if time.Since(began) >= time.Duration(periods)*period {
			break
		}
	}
	if renewed == 0 {
		return nil, fmt.Errorf("%s has renewed none of its locks in %v", c.Name,
			time.Duration(periods)*period)
	}
	calls, err := conn.Calls()
	if err != nil {
		return nil, err
	}
	late := max(watchdogLease*2/3-time.Duration(least)*time.Millisecond, 0)
	return report.Figures{
		"calls": float64(calls["evalsha"].Count+calls["eval"].Count) * held / float64(renewed),
		"late":  float64(late), "lost": float64(lost), "sweeps": float64(sweeps),
	}, nil
}

// leases returns the remaining times of some keys in milliseconds, as Redis reports them.
func leases(conn *server.Conn, look [][]string) ([]int, error) {
	replies, err := conn.Pipeline(look)
	if err != nil {
		return nil, err
	}
	left := make([]int, len(replies))
	for i, text := range replies {
		left[i], err = strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}
