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
	"holdfast/bench/contestants"
	"holdfast/bench/worker"
)

// session is the open client of a worker. A worker has one at a time, and does one task at a time.
type session struct {
	client   contest.Client
	lockers  []contest.Locker
	contexts []context.Context // of the calls of each locker
	cancel   func()            // cancels them
	shared   *worker.Shared
	number   int
	profile  *os.File // nil without profiling
}

var current *session

// open is the task of opening a client and its locks.
type open struct {
	Contestant string
	Setup      contest.Setup
	Locks      []string // one per goroutine
	Shared     string
	Number     int // of the worker, from 0
	Contexts   contexts
}

// nothing is the input of a task that needs none, or the result of a task without one.
type nothing struct{}

func init() {
	worker.Handle("open", func(o open) (nothing, error) { return nothing{}, openSession(o) })
	worker.Handle("close", func(nothing) (nothing, error) {
		if current != nil {
			current.close()
		}
		return nothing{}, nil
	})
	worker.Handle("warm", func(w warming) (nothing, error) {
		return nothing{}, current.warm(w.Cycles)
	})
}

func openSession(o open) (err error) {
	if current != nil {
		return errors.New("a client is open")
	}
	c, err := contestants.Named(o.Contestant)
	if err != nil {
		return err
	}
	client, err := c.Open(o.Setup)
	if err != nil {
		return fmt.Errorf("open %s: %w", o.Contestant, err)
	}
	s := newSession(client, o)
	if o.Shared != "" {
		s.shared, err = worker.OpenShared(o.Shared)
		if err != nil {
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

// ProfileVariable is the environment variable that names a directory. Each process with an open
// client writes a CPU profile into it.
const ProfileVariable = "HOLDFAST_BENCH_PROFILES"

func (s *session) beginProfile(of string) (err error) {
	dir := os.Getenv(ProfileVariable)
	if dir == "" {
		return nil
	}
	of = strings.NewReplacer(" ", "-", ",", "").Replace(of)
	s.profile, err = os.CreateTemp(dir, of+"-*.pprof")
	if err != nil {
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
	// If this came earlier, rueidislock would release the locks acquired with these contexts.
	s.cancel()
	if s.shared != nil {
		_ = s.shared.Close() // the process goes on without it
	}
	current = nil
}

// warming is the task of some cycles before anything is measured. A program that is compiled while
// it runs needs more of them the first time.
type warming struct {
	Cycles  int
	Compile int
}

// warm runs some cycles in every goroutine, each on a lock of its own: one cycle first, which loads
// the scripts, and then all at the same time, so that connections are dialled and the client knows
// that it has many callers.
func (s *session) warm(cycles int) error {
	first := s.client.Locker(fmt.Sprintf("{warm:%d:%d}", s.number, time.Now().UnixNano()))
	// A client that counts failures refuses to work for a moment if scripts were not loaded.
	for i := 0; cycle(first) != nil && i < 20; i++ {
		time.Sleep(50 * time.Millisecond)
	}
	cycles = min(cycles, max(1, 1000/len(s.lockers)))
	errs := make([]error, len(s.lockers))
	var all sync.WaitGroup
	for i := range s.lockers {
		own := s.client.Locker(fmt.Sprintf("{warm:%d:%d:%d}", s.number, time.Now().UnixNano(), i))
		all.Go(func() {
			for range cycles {
				errs[i] = cycle(own)
				if errs[i] != nil {
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

// cycle acquires a lock without contention and releases it. It is not measured, so it may have a
// deadline.
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

// openAll opens a client in each worker. undo closes them.
func openAll(
	ctx context.Context, ws []*worker.Process, of func(i int) open,
) (undo func(), err error) {
	opening, cancel := within(ctx, 20*time.Second+extraTime(ws))
	defer cancel()
	undo = func() {
		closing, cancel := within(context.WithoutCancel(ctx), extraTime(ws))
		defer cancel()
		// a worker that hangs is killed
		_, _ = worker.CallAll[nothing](closing, ws, "close", func(int) any { return nothing{} })
	}
	if _, err := worker.CallAll[nothing](opening, ws, "open",
		func(i int) any { return of(i) }); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// extraTime returns how much more time workers of another program need than this program's: a JVM
// that has just started is slow, and many at a time share the cores.
func extraTime(ws []*worker.Process) (d time.Duration) {
	for _, w := range ws {
		if w.Foreign() {
			d += 3 * time.Second
		}
	}
	return d
}

// warmAll warms workers whose clients are open.
func (e *Env) warmAll(ctx context.Context, ws []*worker.Process) error {
	ctx, cancel := within(ctx, extraTime(ws))
	defer cancel()
	w := warming{Cycles: 10, Compile: pick(e, 600, 4000)}
	if !ws[0].Foreign() {
		_, err := worker.CallAll[nothing](ctx, ws, "warm", func(int) any { return w })
		return err
	}
	if len(ws) > 8 {
		w.Compile = 500 // or many would take minutes
	}
	// All at the same time would take longer.
	for _, p := range ws {
		if _, err := worker.Call[nothing](ctx, p, "warm", w); err != nil {
			return err
		}
	}
	return nil
}
