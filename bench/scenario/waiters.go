package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/bench/contest"
	"holdfast/bench/measure"
	"holdfast/bench/report"
	"holdfast/bench/server"
	"holdfast/bench/worker"
)

// grown is what a client needed before and after a task.
type grown struct {
	Before, After measure.Memory
}

// bytes returns by how much the memory has grown for each of n.
func (g grown) bytes(n int) float64 {
	return (float64(g.After.Live) - float64(g.Before.Live)) / float64(n)
}

// park is the task of having Each goroutines wait for each of the open locks.
type park struct {
	Each   int
	Settle time.Duration
}

// unpark ends what park began.
var unpark func()

func init() {
	worker.Handle("lock all", func(nothing) (grown, error) { return current.lockAll() })
	worker.Handle("park", func(p park) (grown, error) { return current.park(p) })
	worker.Handle("unpark", func(nothing) (nothing, error) {
		unpark()
		return nothing{}, nil
	})
}

// lockAll acquires all open locks, some at a time.
func (s *session) lockAll() (out grown, _ error) {
	out.Before = measure.Settled()
	next, failed := make(chan int), make(chan error, len(s.lockers))
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			for i := range next {
				if err := s.lockers[i].Lock(s.contexts[i]); err != nil {
					failed <- err
				}
			}
		})
	}
	for i := range s.lockers {
		next <- i
	}
	close(next)
	all.Wait()
	close(failed)
	out.After = measure.Settled()
	return out, <-failed
}

func (s *session) park(p park) (grown, error) {
	callers, cancel := cancellable.make(len(s.lockers) * p.Each)
	var out grown
	var all sync.WaitGroup
	got := make(chan struct{}, 1)
	out.Before = measure.Settled()
	for i, l := range s.lockers {
		for j := range p.Each {
			ctx := callers[i*p.Each+j]
			all.Go(func() {
				for ctx.Err() == nil {
					if l.Lock(ctx) == nil {
						got <- struct{}{}
						return
					}
				}
			})
		}
	}
	unpark = func() {
		cancel()
		all.Wait()
	}
	time.Sleep(p.Settle)
	out.After = measure.Settled()
	select {
	case <-got:
		unpark()
		return out, errors.New("a waiter got a lock that was held")
	default:
		return out, nil
	}
}

// crowd is a number of waiters, for one lock or for one each.
type crowd struct {
	key     string
	waiters int
	each    bool
	who     []string
}

// waiters measures waiting for a lock that is held for long.
func waiters(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "waiters", Title: "Waiters on held locks",
		About: "What a waiter costs while nothing happens: commands per waiter and second, " +
			"memory (heap and stack, after collection) and\n" +
			"goroutines per waiter, its own included.",
	}
	crowds := []crowd{
		{"1,000", 1000, false,
			[]string{ours, announcing, "rueidislock, patient", "redsync, rueidis", "redislock"}},
		{"10,000", 10_000, false, []string{ours, "rueidislock, patient"}},
	}
	if e.Short {
		crowds[0].who = []string{ours, "rueidislock, patient", "redsync, rueidis"}
		crowds[1].who = []string{ours}
	} else {
		crowds[1].who = append(crowds[1].who, "redsync, rueidis")
		crowds = append(crowds,
			crowd{"10,000 each", 10_000, true, []string{ours, "rueidislock, patient"}})
	}
	for _, c := range crowds {
		t.Columns = append(t.Columns,
			report.Column{
				Key: c.key + " commands", Head: c.key + ": commands", Unit: report.Decimal,
			},
			report.Column{Key: c.key + " memory", Head: "memory", Unit: report.Bytes},
			report.Column{Key: c.key + " goroutines", Head: "goroutines", Unit: report.Decimal})
	}
	window := pick(e, 1500*time.Millisecond, 6*time.Second)
	// The keep-alive commands of connections count as well: a few per second.
	err := e.takeTurns(ctx, t, crowds[0].who, pick(e, 1, min(e.Rounds, 3)), func(
		ctx context.Context, c entrant, _ *report.Row, _ int,
	) (report.Figures, error) {
		figures := report.Figures{}
		for _, of := range crowds {
			for _, name := range of.who {
				if name != c.Name {
					continue
				}
				if err := e.crowd(ctx, c.Contestant, of, window, figures); err != nil {
					return nil, fmt.Errorf("%s: %w", of.key, err)
				}
			}
		}
		return figures, nil
	})
	if err != nil {
		return nil, err
	}
	for _, c := range crowds {
		t.AtMost(c.key+": no commands per waiter and second (0.00)",
			t.Figure(ours, c.key+" commands"), 0.01, report.Decimal)
		t.AtMost(c.key+": <= 4 KiB per waiter", t.Figure(ours, c.key+" memory"), 4096, report.Bytes)
		t.AtMost(c.key+": 1 goroutine per waiter", t.Figure(ours, c.key+" goroutines"), 1.02,
			report.Decimal)
	}
	return t, nil
}

func (e *Env) crowd(
	ctx context.Context, c contest.Contestant, of crowd, window time.Duration, into report.Figures,
) error {
	ctx, cancel := within(ctx, window+20*time.Second)
	defer cancel()
	ws, err := e.Pool.Get(2, nil)
	if err != nil {
		return err
	}
	defer e.Pool.Put(ws)
	e.names++
	locks := []string{fmt.Sprintf("bench:crowd:%d:0", e.names)}
	for of.each && len(locks) < of.waiters {
		locks = append(locks, fmt.Sprintf("bench:crowd:%d:%d", e.names, len(locks)))
	}
	undo, err := openAll(ctx, ws, func(i int) open {
		return open{Contestant: c.Name, Locks: locks, Number: i,
			Setup: contest.Setup{Addresses: []string{e.Server.Clients}, Goroutines: 100,
				Lease: 2 * time.Minute}}
	})
	if err != nil {
		return err
	}
	defer undo()
	if _, err := worker.Call[nothing](ctx, ws[0], "lock all", nothing{}); err != nil {
		return err
	}
	settle := time.Second + time.Duration(of.waiters)*100*time.Microsecond
	cost, err := worker.Call[grown](ctx, ws[1], "park",
		park{Each: of.waiters / len(locks), Settle: settle})
	if err != nil {
		return err
	}
	watch, err := server.Watch(e.Server.Address)
	if err != nil {
		return err
	}
	time.Sleep(window)
	sent := watch.Stop().Sent()
	if _, err := worker.Call[nothing](ctx, ws[1], "unpark", nothing{}); err != nil {
		return err
	}
	n := float64(of.waiters)
	into[of.key+" commands"] = float64(sent) / n / window.Seconds()
	into[of.key+" memory"] = cost.bytes(of.waiters)
	into[of.key+" goroutines"] = float64(cost.After.Goroutines-cost.Before.Goroutines) / n
	return nil
}
