package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/bench/contest"
	"holdfast/bench/measure"
	"holdfast/bench/report"
	"holdfast/bench/worker"
)

// The words of shared memory that keep holder and waiter in step. All but sentWord and stopWord
// count hand-overs.
const (
	heldWord     = 8 * iota // the holder has the lock
	waitingWord             // the waiter is about to call Lock
	sentWord                // when the holder called Unlock, by the machine's clock
	doneWord                // the waiter has released the lock
	releasedWord            // the holder has called Unlock
	stopWord                // not 0: the time is up
)

// handoverTask is the task of holder and waiter.
type handoverTask struct {
	Until time.Duration
	Most  int
	Wait  time.Duration // how long the waiter has waited at least when it gets the lock
}

func init() {
	worker.Handle("holder", func(h handoverTask) (nothing, error) {
		return nothing{}, current.holder(h)
	})
	worker.Handle("waiter", func(handoverTask) ([]int64, error) { return current.waiter() })
}

var errTwo = errors.New("the waiter got the lock before the holder released it")

// minWait is how long the waiter has waited at least when it gets the lock, besides the delays of
// the network: it has subscribed and sleeps.
const minWait = 3 * time.Millisecond

func (s *session) word(i int) *int64 { return s.shared.Word(i) }

// waitFor blocks until a word has reached n, and reports whether it has. Sleeping leaves the core
// to what is measured.
func (s *session) waitFor(word int, n int64) bool {
	for atomic.LoadInt64(s.word(word)) < n {
		if atomic.LoadInt64(s.word(stopWord)) != 0 {
			return false
		}
		time.Sleep(100 * time.Microsecond)
	}
	return true
}

func (s *session) holder(h handoverTask) error {
	ctx, l := s.contexts[0], s.lockers[0]
	defer atomic.StoreInt64(s.word(stopWord), 1)
	for i := int64(1); i <= int64(h.Most) && measure.Now() < h.Until; i++ {
		for {
			err := l.Lock(ctx)
			if err == nil {
				break
			}
			if !errors.Is(err, contest.ErrGaveUp) {
				return err
			}
		}
		atomic.StoreInt64(s.word(heldWord), i)
		if !s.waitFor(waitingWord, i) {
			return errors.New("the waiter has failed")
		}
		// The time varies, or a poller could fall in step with it.
		time.Sleep(h.Wait + time.Duration(i%8)*250*time.Microsecond)
		atomic.StoreInt64(s.word(sentWord), int64(measure.Now()))
		atomic.StoreInt64(s.word(releasedWord), i)
		if err := l.Unlock(ctx); err != nil {
			return err
		}
		if !s.waitFor(doneWord, i) {
			return errors.New("the waiter has failed")
		}
	}
	return nil
}

func (s *session) waiter() (took []int64, err error) {
	ctx, l := s.contexts[0], s.lockers[0]
	for i := int64(1); ; i++ {
		if !s.waitFor(heldWord, i) {
			return took, nil
		}
		atomic.StoreInt64(s.word(waitingWord), i)
		for {
			err := l.Lock(ctx)
			if err == nil {
				break
			}
			if !errors.Is(err, contest.ErrGaveUp) {
				atomic.StoreInt64(s.word(stopWord), 1)
				return nil, err
			}
		}
		got := int64(measure.Now())
		if atomic.LoadInt64(s.word(releasedWord)) < i {
			atomic.StoreInt64(s.word(stopWord), 1)
			return nil, errTwo
		}
		took = append(took, got-atomic.LoadInt64(s.word(sentWord)))
		if err := l.Unlock(ctx); err != nil {
			atomic.StoreInt64(s.word(stopWord), 1)
			return nil, err
		}
		atomic.StoreInt64(s.word(doneWord), i)
	}
}

// handover measures the time from one process's call of Unlock to the return of another's Lock. The
// processes read the same clock. The waiter has waited for some milliseconds, and the machine is
// otherwise idle.
func handover(ctx context.Context, e *Env) (*report.Table, error) {
	t := &report.Table{
		Scenario: "handover", Title: "Hand-over between two processes", Floor: "message alone",
		About: "From the holder's call of unlock to the waiter's return, by the machine's clock; " +
			"both processes run the contestant's client. The\n" +
			"time includes waking a goroutine that sleeps, for the floors as well.",
		Columns: []report.Column{
			{Key: "p50", Head: "p50", Unit: report.Duration, Ratio: true},
			{Key: "p99", Head: "p99", Unit: report.Duration, Ratio: true},
			{Key: "longest", Head: "longest", Unit: report.Duration},
			{Key: "count", Head: "hand-overs", Unit: report.Count},
		},
	}
	names := append([]string{"message alone", "queue in Redis", "message and acquire script", ours},
		waiting(e)...)
	window := pick(e, 200*time.Millisecond, 500*time.Millisecond)
	// A 99th percentile takes many hand-overs. They come in small rounds so that a slow moment hits
	// all contestants. Figures are of several rounds together.
	together := pick(e, 2, 8)
	if e.Delay > 0 {
		together /= 2
	}
	took := map[string][]int64{}
	err := e.takeTurns(ctx, t, names, e.Rounds*together, func(
		ctx context.Context, c entrant, row *report.Row, i int,
	) (report.Figures, error) {
		some, err := handoverRound(ctx, e, c.Contestant, window)
		if err != nil {
			// it comes from another process, as text
			if strings.Contains(err.Error(), errTwo.Error()) {
				row.Break(errTwo.Error())
			}
			return nil, err
		}
		took[c.Name] = append(took[c.Name], some...)
		if (i+1)%together != 0 {
			return report.Figures{}, nil
		}
		all := took[c.Name]
		took[c.Name] = nil
		return report.Figures{
			"p50": float64(measure.Quantile(all, 0.5)), "p99": float64(measure.Quantile(all, 0.99)),
			"longest": float64(measure.Quantile(all, 1)),
			"count":   float64(len(all)),
		}, nil
	})
	if err != nil {
		return nil, err
	}
	most := 1.15
	if e.Delay > 0 {
		most = 1.1
	}
	t.Plots = []report.Plot{{File: "handover", Title: "Hand-over between two processes: time",
		Keys: []string{"p50"}, Log: true,
		Label: "median, in terms of the message alone (less is better)"}}
	t.AtMost(fmt.Sprintf("p50 <= %v x the message alone", most),
		t.Ratio(ours, t.Floor, "p50"), most, report.Ratio)
	t.AtMost("p99 <= 2 x the message alone", t.Ratio(ours, t.Floor, "p99"), 2, report.Ratio)
	return t, nil
}

func handoverRound(
	ctx context.Context, e *Env, c contest.Contestant, window time.Duration,
) ([]int64, error) {
	ws, err := e.Pool.Get(2, e.program(c))
	if err != nil {
		return nil, err
	}
	defer e.Pool.Put(ws)
	path, remove, err := worker.NewShared()
	if err != nil {
		return nil, err
	}
	defer remove()
	name := e.name("handover")
	undo, err := openAll(ctx, ws, func(i int) open {
		return open{Contestant: c.Name, Locks: []string{name}, Shared: path, Number: i,
			Setup: contest.Setup{Addresses: []string{e.Server.Clients}, Goroutines: 1,
				Lease: 30 * time.Second, Waiter: i == 1}}
	})
	if err != nil {
		return nil, err
	}
	defer undo()
	if c.Java {
		if err := e.warmAll(ctx, ws); err != nil {
			return nil, err
		}
	}
	ctx, cancel := within(ctx, window)
	defer cancel()
	h := handoverTask{Until: measure.Now() + window, Most: 1000, Wait: minWait + 8*e.Delay}
	type answer struct {
		took []int64
		err  error
	}
	waited := make(chan answer, 1)
	go func() {
		took, err := worker.Call[[]int64](ctx, ws[1], "waiter", h)
		waited <- answer{took, err}
	}()
	_, err = worker.Call[nothing](ctx, ws[0], "holder", h)
	got := <-waited
	switch {
	case got.err != nil:
		return nil, got.err
	case err != nil:
		return nil, err
	case len(got.took) == 0:
		return nil, errors.New("nothing was handed over")
	default:
		return got.took, nil
	}
}
