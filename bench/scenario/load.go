package scenario

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"holdfast/bench/contest"
	"holdfast/bench/measure"
	"holdfast/bench/report"
	"holdfast/bench/server"
	"holdfast/bench/worker"
)

// load is goroutines in processes that acquire and release locks as fast as they can.
type load struct {
	processes  int
	goroutines int  // in each process
	ownKeys    bool // each goroutine has a lock of its own; else all contend for one
	window     time.Duration
}

// ramp is how long a load runs before it is measured: until all have begun, and queues have formed.
const ramp = 100 * time.Millisecond

// grace returns how long waits may go on when the time is up. By then all have had the lock, even
// if each holds it for a moment.
func (l load) grace() time.Duration {
	const each = 5 * time.Millisecond
	return min(2*time.Second+time.Duration(l.processes*l.goroutines)*each, 8*time.Second)
}

// closed stands for a client that is closed.
type closed struct{}

func (closed) Locker(string) contest.Locker { return nil }
func (closed) Close()                       {}

// run is the task of a worker in a load. Times are by the machine's clock.
type run struct {
	Start, From, Until time.Duration
	Hold               time.Duration // how long a lock is held; mostly 0
	Cut                bool          // cancel the contexts of waits at Until
	Grace              time.Duration // how long waits may go on after Until
}

// ran is the result of a run.
type ran struct {
	Acquired []int          `json:"acquired"` // by each goroutine, between From and Until
	Total    int            `json:"total"`    // also before and after
	Waits    measure.Bars   `json:"waits"`
	Cycles   measure.Bars   `json:"cycles"`
	Before   measure.Memory `json:"before"`
	After    measure.Memory `json:"after"`
	GaveUp   int            `json:"gave_up"`
	// a goroutine waited for a free lock until the client was closed
	Stuck      bool     `json:"stuck"`
	Violations int      `json:"violations"` // found another goroutine in the lock
	Errors     []string `json:"errors"`     // one per goroutine at most
}

func init() {
	worker.Handle("run", func(r run) (ran, error) { return current.run(r), nil })
}

// guarded returns the words of shared memory that a lock protects: how often it was acquired, and
// its holder.
func (s *session) guarded(lock int) (count, holder *int64) {
	return s.shared.Word(16 * lock), s.shared.Word(16*lock + 8)
}

func (s *session) run(r run) ran {
	runners := make([]*runner, len(s.lockers))
	for i, l := range s.lockers {
		g := &runner{ctx: s.contexts[i], locker: l, id: int64(s.number*len(s.lockers) + i + 1)}
		lock := 0
		if s.number < 0 { // a lock each
			lock = i
		}
		g.count, g.holder = s.guarded(lock)
		runners[i] = g
	}
	runtime.GC()
	out := ran{Before: measure.MemoryNow()}
	var all sync.WaitGroup
	for _, g := range runners {
		all.Go(func() { g.run(r) })
	}
	// A wait for a message that never comes must not cost the round. It ends with the client.
	stuck := time.AfterFunc(r.Until-measure.Now()+r.Grace, s.client.Close)
	all.Wait()
	if !stuck.Stop() {
		s.client = closed{}
		out.Stuck = true
	}
	out.After = measure.MemoryNow()
	var waits, cycles measure.Histogram
	for _, g := range runners {
		out.Acquired = append(out.Acquired, g.acquired)
		out.Total += g.total
		out.GaveUp += g.gaveUp
		out.Violations += g.violations
		waits.Add(g.waits.Bars())
		cycles.Add(g.cycles.Bars())
		if g.err != nil {
			out.Errors = append(out.Errors, g.err.Error())
		}
	}
	out.Waits, out.Cycles = waits.Bars(), cycles.Bars()
	return out
}

// runner is one goroutine of a load.
type runner struct {
	ctx           context.Context // of the caller, for Lock and Unlock
	locker        contest.Locker
	id            int64
	count, holder *int64 // plain memory, guarded by the lock and nothing else

	acquired, total    int
	gaveUp, violations int
	waits, cycles      measure.Histogram
	err                error
}

func (g *runner) run(r run) {
	waiting := g.ctx
	if r.Cut {
		var cancel context.CancelFunc
		waiting, cancel = context.WithCancel(waiting)
		defer cancel()
		time.AfterFunc(r.Until-measure.Now(), cancel)
	}
	measure.SleepUntil(r.Start)
	for {
		asked := measure.Now()
		if asked >= r.Until {
			return
		}
		if !g.lock(waiting, r.Until) {
			g.waits.Record(r.Until - max(asked, r.From))
			return
		}
		got := measure.Now()
		g.inside(r.Hold)
		err := g.locker.Unlock(g.ctx)
		done := measure.Now()
		g.total++
		if got >= r.From && got < r.Until {
			g.acquired++
			g.cycles.Record(done - asked)
			g.waits.Record(got - asked)
		} else if got >= r.Until && asked >= r.From {
			g.waits.Record(r.Until - asked) // it had waited for so long when time was up
		}
		if err != nil {
			g.failed(err)
		}
	}
}

// lock acquires the lock. It returns false when the time is up.
func (g *runner) lock(ctx context.Context, until time.Duration) bool {
	for {
		err := g.locker.Lock(ctx)
		switch {
		case err == nil:
			return true
		case errors.Is(err, contest.ErrGaveUp):
			g.gaveUp++
		case ctx.Err() != nil:
		default:
			g.failed(err)
			time.Sleep(time.Millisecond)
		}
		if measure.Now() >= until {
			return false
		}
	}
}

func (g *runner) failed(err error) {
	if g.err == nil {
		g.err = err
	}
}

// inside is what the lock protects. If two goroutines are here at the same time, an update of count
// is lost, or one finds the other.
func (g *runner) inside(hold time.Duration) {
	if *g.holder != 0 {
		g.violations++
	}
	*g.holder = g.id
	seen := *g.count
	if hold > 0 {
		time.Sleep(hold)
	}
	*g.count = seen + 1
	if *g.holder != g.id {
		g.violations++
	}
	*g.holder = 0
}

// loads measures a load with each contestant.
type loads struct {
	env     *Env
	load    load
	origins map[string]server.Origins // by contestant
}

// round measures one round of one contestant. The first is also watched, while locks are held for a
// while, to see who sends which commands. Two holders at a time could not miss each other then.
func (l *loads) round(
	ctx context.Context, c entrant, row *report.Row, _ int,
) (_ report.Figures, err error) {
	ws, err := l.env.Pool.Get(l.load.processes, l.env.program(c.Contestant))
	if err != nil {
		return nil, err
	}
	defer l.env.Pool.Put(ws)
	path, remove, err := worker.NewShared()
	if err != nil {
		return nil, err
	}
	defer remove()
	shared, err := worker.OpenShared(path)
	if err != nil {
		return nil, err
	}
	defer shared.Close() //nolint:errcheck // the page is no longer needed
	s := &sessions{loads: l, contestant: c, row: row, workers: ws, shared: shared}
	undo, err := openAll(ctx, ws, func(i int) open {
		o := open{Contestant: c.Name, Shared: path, Number: i, Contexts: c.contexts,
			Setup: contest.Setup{Addresses: []string{l.env.Server.Clients},
				Goroutines: l.load.goroutines, Lease: 30 * time.Second,
				Far: l.env.Delay > 0}}
		if l.load.ownKeys {
			o.Number = -1 // there is one process then
		}
		name := l.env.lockName(l.load.ownKeys)
		for g := range l.load.goroutines {
			o.Locks = append(o.Locks, name(g))
		}
		return o
	})
	l.env.names++
	if err != nil {
		return nil, err
	}
	defer undo()
	if err := l.env.warmAll(ctx, ws); err != nil {
		return nil, err
	}
	// Once is enough, unless the machine was too busy for anything to happen.
	for try := 0; try < 3 && !l.origins[c.Name].Scripts(); try++ {
		watch, err := server.Watch(l.env.Server.Address)
		if err != nil {
			return nil, err
		}
		_, err = s.run(ctx, 200*time.Millisecond, 100*time.Microsecond)
		l.origins[c.Name] = watch.Stop()
		if err != nil {
			return nil, err
		}
	}
	if !l.origins[c.Name].Scripts() {
		return nil, errors.New("no script was seen at work, so commands cannot be counted")
	}
	return s.measure(ctx)
}

// lockName returns a function that returns the names of the locks of one round, the same in all
// processes. The braces keep what belongs to a lock on the same node of a cluster.
func (e *Env) lockName(ownKeys bool) func(g int) string {
	return func(g int) string {
		if !ownKeys {
			g = 0
		}
		return fmt.Sprintf("{bench:load:%d:%d}", e.names, g)
	}
}

// sessions are the open clients of one round.
type sessions struct {
	*loads
	contestant entrant
	row        *report.Row
	workers    []*worker.Process
	shared     *worker.Shared
	before     int64 // acquisitions until now
}

// run runs all workers, and checks that no lock had two holders at once.
func (s *sessions) run(ctx context.Context, window, hold time.Duration) ([]ran, error) {
	ctx, cancel := within(ctx, ramp+window+extraTime(s.workers))
	defer cancel()
	start := measure.Now() + 20*time.Millisecond + extraTime(s.workers)/100
	r := run{
		Start: start, From: start + ramp, Until: start + ramp + window, Hold: hold,
		Grace: s.load.grace(), Cut: s.contestant.Cut && s.contestant.contexts == cancellable,
	}
	rans, err := worker.CallAll[ran](ctx, s.workers, "run", func(int) any { return r })
	if err != nil {
		return nil, err
	}
	stuck := false
	total, violations := int64(0), 0
	for _, r := range rans {
		total += int64(r.Total)
		violations += r.Violations
		if r.Stuck {
			stuck = true
			continue // its errors come from the closed client
		}
		for _, text := range r.Errors {
			s.row.Problem(text)
		}
	}
	counted := -s.before
	locks := 1
	if s.load.ownKeys {
		locks = s.load.goroutines
	}
	for lock := range locks {
		counted += *s.shared.Word(16 * lock)
	}
	s.before += counted
	if lost := total - counted; lost != 0 || violations != 0 {
		s.row.Break(fmt.Sprintf("%d of %d updates lost, %d met another holder", lost, total,
			violations))
	}
	if stuck {
		s.row.Problem(fmt.Sprintf("a waiter still waited %v after the time was up, until the "+
			"client was closed", r.Grace))
		if hold > 0 {
			return nil, errors.New("not measured because of that")
		}
	}
	return rans, nil
}

// measure runs the load once more, and returns its figures.
func (s *sessions) measure(ctx context.Context) (report.Figures, error) {
	conn, err := server.Dial(s.env.Server.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.ResetCalls(); err != nil {
		return nil, err
	}
	rans, err := s.run(ctx, s.load.window, 0)
	if err != nil {
		return nil, err
	}
	calls, err := conn.Calls()
	if err != nil {
		return nil, err
	}
	var waits, cycles measure.Histogram
	var each, processes []int
	acquired, total, mallocs, gaveUp := 0, 0, 0.0, 0
	for _, r := range rans {
		mine := 0
		for _, n := range r.Acquired {
			mine += n
		}
		each, processes = append(each, r.Acquired...), append(processes, mine)
		acquired += mine
		total += r.Total
		gaveUp += r.GaveUp
		mallocs += float64(r.After.Mallocs - r.Before.Mallocs)
		waits.Add(r.Waits)
		cycles.Add(r.Cycles)
	}
	if acquired == 0 {
		return nil, errors.New("no lock was acquired")
	}
	equal := float64(acquired) / float64(len(processes))
	perLock := 1
	if s.load.ownKeys {
		perLock = s.load.goroutines
	}
	rate := float64(acquired) / s.load.window.Seconds()
	// First come, first served, each waits until every other one has had the lock once.
	bound := float64(len(each)/perLock) * 1e9 / rate * float64(perLock)
	sent, took := s.origins[s.contestant.Name].Clients(calls)
	figures := report.Figures{
		"rate": rate, "commands": sent / float64(total), "server": float64(took) / float64(total),
		"jain": measure.Jain(each), "wait50": float64(waits.Quantile(0.5)),
		"wait99": float64(waits.Quantile(0.99)), "longest": float64(waits.Max()),
		"cycle50": float64(cycles.Quantile(0.5)), "cycle99": float64(cycles.Quantile(0.99)),
		"gaveup":   float64(gaveUp),
		"least":    float64(slices.Min(processes)) / equal,
		"most":     float64(slices.Max(processes)) / equal,
		"boundmax": float64(waits.Max()) / bound,
	}
	if s.contestant.Java {
		s.row.Note(noAllocs)
	} else {
		figures["allocs"] = mallocs / float64(total)
	}
	return figures, nil
}
