package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"holdfast/bench/contest"
	"holdfast/bench/rivals"
	"holdfast/bench/worker"
)

// session is the client that a worker has open. A worker has one at a time, and does one task at a time.
type session struct {
	client   contest.Client
	lockers  []contest.Locker
	contexts []context.Context // with which each locker is called
	cancel   func()            // cancels them
	shared   *worker.Shared
	number   int
	profile  *os.File // nil without profiling
}

var current *session

// open tells a worker which client to open, and which locks.
type open struct {
	Contestant string
	Setup      contest.Setup
	Locks      []string // one per goroutine
	Shared     string
	Number     int // of the worker, from 0
	Contexts   contexts
}

// nothing is the answer to a task that has none, and the question of one that needs none.
type nothing struct{}

func init() {
	worker.Handle("open", func(o open) (nothing, error) { return nothing{}, openSession(o) })
	worker.Handle("close", func(nothing) (nothing, error) {
		if current != nil {
			current.close()
		}
		return nothing{}, nil
	})
	worker.Handle("warm", func(w warming) (nothing, error) { return nothing{}, current.warm(w.Cycles) })
}

func openSession(o open) (err error) {
	if current != nil {
		return errors.New("a client is open")
	}
	c, err := rivals.Named(o.Contestant)
	if err != nil {
		return err
	}
	client, err := c.Open(o.Setup)
	if err != nil {
		return fmt.Errorf("open %s: %w", o.Contestant, err)
	}
	s := newSession(client, o)
	if o.Shared != "" {
		if s.shared, err = worker.OpenShared(o.Shared); err != nil {
			s.client.Close()
			return err
		}
	}
	current = s
	return s.beginProfile(o.Contestant)
}

// newSession returns a session with the locks and the contexts that o names.
func newSession(client contest.Client, o open) *session {
	s := &session{client: client, number: o.Number}
	for _, name := range o.Locks {
		s.lockers = append(s.lockers, client.Locker(name))
	}
	s.contexts, s.cancel = o.Contexts.make(len(s.lockers))
	return s
}

// ProfileVariable in the environment is a directory into which each open client's process writes a CPU profile.
const ProfileVariable = "HOLDFAST_BENCH_PROFILES"

func (s *session) beginProfile(of string) (err error) {
	dir := os.Getenv(ProfileVariable)
	if dir == "" {
		return nil
	}
	of = strings.NewReplacer(" ", "-", ",", "").Replace(of)
	if s.profile, err = os.CreateTemp(dir, of+"-*.pprof"); err != nil {
		return err
	}
	return pprof.StartCPUProfile(s.profile)
}

func (s *session) close() {
	if s.profile != nil {
		pprof.StopCPUProfile()
		s.profile.Close()
	}
	s.client.Close()
	// Cancelled earlier, rueidislock would release what was taken with these contexts.
	s.cancel()
	if s.shared != nil {
		_ = s.shared.Close() // the process has other things to do
	}
	current = nil
}

// warming is the task of going through some cycles before anything is measured. A program that is compiled while it runs goes
// through more of them the first time.
type warming struct {
	Cycles  int
	Compile int
}

// warm has every goroutine go through some cycles on a lock of its own: one first, which loads the scripts, and then all at the
// same time, so that connections are dialled and the client knows that it is used by many.
func (s *session) warm(cycles int) error {
	first := s.client.Locker(fmt.Sprintf("warm:%d:%d", s.number, time.Now().UnixNano()))
	// A client that counts failures refuses to work for a moment when scripts were not loaded.
	for i := 0; cycle(first) != nil && i < 20; i++ {
		time.Sleep(50 * time.Millisecond)
	}
	errs := make([]error, len(s.lockers))
	var all sync.WaitGroup
	for i := range s.lockers {
		own := s.client.Locker(fmt.Sprintf("warm:%d:%d:%d", s.number, time.Now().UnixNano(), i))
		all.Go(func() {
			for range cycles {
				if errs[i] = cycle(own); errs[i] != nil {
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// cycle takes a lock that nobody else wants, and releases it. It is not what is measured, so it may have a deadline.
func cycle(l contest.Locker) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		err := l.Lock(ctx)
		if err == nil {
			return l.Unlock(ctx)
		}
		if !errors.Is(err, contest.ErrGaveUp) {
			return err
		}
	}
}

// openAll opens a client in each worker, and undo closes them.
func openAll(ctx context.Context, ws []*worker.Process, of func(i int) open) (undo func(), err error) {
	opening, cancel := within(ctx, 20*time.Second+patience(ws))
	defer cancel()
	undo = func() {
		closing, cancel := within(context.WithoutCancel(ctx), patience(ws))
		defer cancel()
		_, _ = worker.CallAll[nothing](closing, ws, "close", func(int) any { return nothing{} }) // who hangs is killed
	}
	if _, err := worker.CallAll[nothing](opening, ws, "open", func(i int) any { return of(i) }); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// patience is how much more time than this program's workers those of another program are given: a JVM that has just started
// does everything slowly, and many at a time share the cores.
func patience(ws []*worker.Process) (d time.Duration) {
	for _, w := range ws {
		if w.Foreign() {
			d += 3 * time.Second
		}
	}
	return d
}

// warmAll has workers that have their clients open go through some cycles.
func (e *Env) warmAll(ctx context.Context, ws []*worker.Process) error {
	ctx, cancel := within(ctx, patience(ws))
	defer cancel()
	w := warming{Cycles: 10, Compile: pick(e, 600, 4000)}
	if !ws[0].Foreign() {
		_, err := worker.CallAll[nothing](ctx, ws, "warm", func(int) any { return w })
		return err
	}
	if len(ws) > 8 {
		w.Compile = 500 // or many would take minutes
	}
	// At the same time they would take longer, for all together.
	for _, p := range ws {
		if _, err := worker.Call[nothing](ctx, p, "warm", w); err != nil {
			return err
		}
	}
	return nil
}
