package scenario

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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
	h := holding{held: 10_000, looks: 10_000, lease: watchdogLease, periods: pick(e, 3, 6)}
	who := []string{ours, "rueidislock, patient"}
	err := e.takeTurns(ctx, t, who, pick(e, 1, min(e.Rounds, 3)), func(
		ctx context.Context, c entrant, _ *report.Row, _ int,
	) (report.Figures, error) {
		return e.renewals(ctx, c.Contestant, h)
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

// holding is locks that are held for some periods of their watchdog.
type holding struct {
	held, looks int // how many, and at how many of them the benchmark looks
	lease       time.Duration
	periods     int
}

func init() {
	worker.Handle("processor", func(nothing) (time.Duration, error) {
		var used unix.Rusage
		err := unix.Getrusage(unix.RUSAGE_SELF, &used)
		return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
	})
}

func (e *Env) renewals(
	ctx context.Context, c contest.Contestant, h holding,
) (report.Figures, error) {
	period := h.lease / 3
	ctx, cancel := within(ctx, 2*time.Minute)
	defer cancel()
	ws, err := e.Pool.Get(1, nil)
	if err != nil {
		return nil, err
	}
	defer e.Pool.Put(ws)
	e.names++
	o := open{Contestant: c.Name,
		Setup: contest.Setup{Addresses: []string{e.Server.Clients}, Goroutines: 64,
			Period: h.lease}}
	look := make([][]string, 0, h.looks)
	for i := range h.held {
		name := fmt.Sprintf("bench:watchdog:%d:%d", e.names, i)
		o.Locks = append(o.Locks, name)
		if i%(h.held/h.looks) == 0 {
			look = append(look, []string{"PTTL", keyOf(c.Name, name)})
		}
	}
	undo, err := openAll(ctx, ws, func(int) open { return o })
	if err != nil {
		return nil, err
	}
	defer undo()
	memory, err := worker.Call[grown](ctx, ws[0], "lock all", nothing{})
	if err != nil {
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
	var used time.Duration
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
			used, err = worker.Call[time.Duration](ctx, ws[0], "processor", nothing{})
			if err != nil {
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
		if time.Since(began) >= time.Duration(h.periods)*period {
			break
		}
	}
	if renewed == 0 {
		return nil, fmt.Errorf("%s has renewed none of its locks in %v", c.Name,
			time.Duration(h.periods)*period)
	}
	calls, err := conn.Calls()
	if err != nil {
		return nil, err
	}
	after, err := worker.Call[time.Duration](ctx, ws[0], "processor", nothing{})
	if err != nil {
		return nil, err
	}
	renewals := float64(renewed * (h.held / h.looks))
	late := max(h.lease*2/3-time.Duration(least)*time.Millisecond, 0)
	scripts, evals := calls["evalsha"], calls["eval"]
	return report.Figures{
		"calls": float64(scripts.Count+evals.Count) * float64(h.held) / renewals,
		"late":  float64(late), "lost": float64(lost), "sweeps": float64(sweeps),
		"memory": memory.bytes(h.held), "client": float64(after-used) / renewals,
		"server": float64(scripts.Time+evals.Time) / renewals,
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
