package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// marker is the environment variable that makes this program a worker.
const marker = "HOLDFAST_BENCH_WORKER"

// ErrHung is returned by a call that did not end in time. The process was killed.
var ErrHung = errors.New("hung")

// Program is a program other than this one whose processes are workers.
type Program struct {
	Command []string // starts a worker
}

// Process is a worker as its parent sees it. Its methods are not safe for concurrent use.
type Process struct {
	of    *Program // nil is this program
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ended chan struct{}
	dead  bool
}

// request is a line to a worker, and response one from it.
type request struct {
	Task string          `json:"task"`
	In   json.RawMessage `json:"in"`
}

type response struct {
	Out   json.RawMessage `json:"out"`
	Error string          `json:"error"`
}

// Start starts a worker that may use the given CPU only, or all with AnyCore. With nil it is one of
// this program.
func Start(core int, of *Program) (*Process, error) {
	p := &Process{of: of, ended: make(chan struct{})}
	var err error
	p.cmd, err = of.start()
	if err != nil {
		return nil, err
	}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.in, err = p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Wait would close the reading end of a StdoutPipe under the reader.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.out = w, bufio.NewReaderSize(r, 1<<16)

	started := make(chan error)
	go func() {
		// Both the affinity and the death signal belong to the thread that forks, so it must live
		// as long as the worker.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		defer r.Close()
		undo, err := Pin(core)
		if err == nil {
			err = p.cmd.Start()
			undo()
		}
		w.Close()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // its last call reports how it ended
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start a worker: %w", err)
	}
	return p, nil
}

func (o *Program) start() (*exec.Cmd, error) {
	if o != nil {
		return exec.Command(o.Command[0], o.Command[1:]...), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), marker+"=1")
	return cmd, nil
}

// Foreign reports whether the worker is of another program.
func (p *Process) Foreign() bool { return p.of != nil }

// Call has the worker do a task, and waits for the result. If ctx ends first the worker is killed,
// and the error is ErrHung.
func Call[Out any](ctx context.Context, p *Process, task string, in any) (Out, error) {
	var out Out
	raw, err := p.call(ctx, task, in)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

func (p *Process) call(ctx context.Context, task string, in any) (json.RawMessage, error) {
	if p.dead {
		return nil, ErrHung
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(request{Task: task, In: raw})
	if err != nil {
		return nil, err
	}
	// A worker of this program sleeps while it has no task. Other programs may be busy then, such
	// as compiling themselves, and would disturb what is measured elsewhere. So they are stopped.
	if p.Foreign() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT) // if it is dead, the next lines fail
		defer func() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }()
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("%s: the worker is gone: %w", task, err)
	}
	undo := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	reply, err := p.out.ReadBytes('\n')
	if !undo() {
		p.dead = true
		return nil, fmt.Errorf("%s: %w", task, ErrHung)
	}
	if err != nil {
		p.dead = true
		return nil, fmt.Errorf("%s: the worker has ended: %w", task, err)
	}
	var r response
	if err := json.Unmarshal(reply, &r); err != nil {
		return nil, fmt.Errorf("%s: the worker said %q", task, reply)
	}
	if r.Error != "" {
		return nil, fmt.Errorf("%s: %s", task, r.Error)
	}
	return r.Out, nil
}

// Stop ends the worker whatever it does, and waits for its end.
func (p *Process) Stop() {
	p.dead = true
	p.in.Close()
	_ = p.cmd.Process.Kill() // fails if it is dead already
	<-p.ended
}

// Pool keeps workers that run on any CPU for reuse: starting one takes longer than most
// measurements.
type Pool struct {
	idle []*Process
}

// Get returns n workers of a program, nil being this one, and starts those that are missing.
func (o *Pool) Get(n int, of *Program) ([]*Process, error) {
	var got []*Process
	for range n {
		// The one that was used last has most in its caches.
		last := len(o.idle) - 1
		for last >= 0 && o.idle[last].of != of {
			last--
		}
		var p *Process
		if last >= 0 {
			p = o.idle[last]
			o.idle = slices.Delete(o.idle, last, last+1)
		} else {
			var err error
			p, err = Start(AnyCore, of)
			if err != nil {
				o.Put(got)
				return nil, err
			}
		}
		got = append(got, p)
	}
	return got, nil
}

// Put returns workers to the pool. They must have nothing open. Killed ones are dropped.
func (o *Pool) Put(processes []*Process) {
	for _, p := range processes {
		if p.dead {
			p.Stop()
		} else {
			o.idle = append(o.idle, p)
		}
	}
}

// Stop ends all workers that are in the pool.
func (o *Pool) Stop() {
	for _, p := range o.idle {
		p.Stop()
	}
	o.idle = nil
}

// CallAll has all workers do a task at the same time, and waits for all. in is called with the
// index of a worker. The error is that of the first worker that failed.
func CallAll[Out any](
	ctx context.Context, processes []*Process, task string, in func(i int) any,
) ([]Out, error) {
	outs := make([]Out, len(processes))
	errs := make([]error, len(processes))
	var all sync.WaitGroup
	for i, p := range processes {
		all.Go(func() { outs[i], errs[i] = Call[Out](ctx, p, task, in(i)) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return outs, err
		}
	}
	return outs, nil
}
