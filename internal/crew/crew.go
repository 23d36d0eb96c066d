// Package crew runs calls to one server with a bounded number of goroutines, and knows for how long the server has not
// answered, and how long its answers take.
//
// A lock over several servers asks all of them at once and goes on as soon as enough have answered. The call to a server
// that hangs stays behind: it cannot be given up, since the server may still carry it out, and its outcome has to be
// handled when it comes. With a goroutine per call, a server that hangs for an hour would cost one goroutine for every
// lock taken during that hour. Here it costs at most [Workers] goroutines:
//
//   - Only [Crew.Do] starts a worker, and only while fewer than Workers exist. Both happen under one mutex.
//   - A call that finds no free worker waits in line, where it is a few pointers and no goroutine. Whoever put it there
//     takes it out again with [Crew.Withdraw] when the answer is of no more use, or asks [Crew.Stalled] first and puts
//     nothing in. The line is as long as there are callers who still want something, and no longer.
//
// And no call is forgotten: a worker ends only when the line is empty, in the same step in which it stops being counted,
// so a call comes into the line either before that step, and is taken, or after it, and has a worker started for it.
// A crew with nothing to do has no goroutine, so there is nothing to close.
package crew

import (
	"sync"
	"time"
)

// Workers is how many calls may be under way at a time.
const Workers = 64

// Task is what is to be done. It is an interface and not a function, so that what knows the details of a call can be its
// task, without a closure for each call.
type Task interface {
	// Run makes the call and handles its outcome. It may block for as long as the server does not answer, and may use the
	// crew. It has to return: nobody recovers a panic, and runtime.Goexit would take the worker away for good.
	Run()
}

// Func is a function that is a [Task].
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// Call is one call to the server. It is given to one crew, once, and is not changed or recycled after that: the crew
// looks at it until shortly after its task has returned.
type Call struct {
	Task Task
	// Patience is how long the call may be under way before the server counts as stalled.
	Patience time.Duration

	// Guarded by the mutex of the crew.
	state      state
	started    time.Time // when the call came under way
	prev, next *Call     // neighbours in the queue that the state stands for
}

// state is how far a call has come.
type state uint8

const (
	unused   state = iota // Do has not had it yet
	inLine                // in Crew.line
	underWay              // in Crew.underWay
	answered              // its task has returned
	dropped               // withdrawn or refused: its task was not run and never will be
)

// Crew runs calls to one server. The zero value is not usable: see [New]. All methods may be called at any time from any
// goroutine; none of them waits for the server.
type Crew struct {
	start func(func()) bool
	work  func() // the method run, bound once instead of allocated by every Do
	trips roundTrips

	mu       sync.Mutex // guards everything below, and the unexported fields of all calls
	workers  int        // goroutines that were started and have not found the line empty yet; never above Workers
	line     queue      // calls that wait for a worker, in order of Do; while it has any, workers > 0
	underWay queue      // calls that a worker is running, in order of their start; never more than workers
}

// New returns a crew without goroutines. start runs a function in a goroutine that somebody waits for, or returns false
// because the client is closed, having started nothing. It is called with the crew's mutex locked, so it must not wait,
// and neither use the crew nor run the function itself.
func New(start func(func()) bool) *Crew {
	w := &Crew{start: start}
	w.work = w.run
	return w
}

// Do starts c, or puts it in line when Workers are busy. It returns false, and c.Task will never be run, when c needs a
// goroutine to be started and the client is closed. It panics when c was given to Do before, which would tie the line
// into a knot.
func (w *Crew) Do(c *Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.state != unused {
		panic("crew: Do called twice with the same Call")
	}
	// A worker is started under the mutex, so that workers never counts one that will turn out not to exist: a call could
	// be left in line for it. A worker that is being started and one that is about to end are the same to a call. Whoever
	// comes first takes it.
	if w.workers < Workers && w.start(w.work) {
		w.workers++
	}
	if w.workers == 0 {
		c.state = dropped
		return false
	}
	c.state = inLine
	w.line.push(c)
	return true
}

// Withdraw takes c out of the line. It returns true if c.Task was not run and never will be, also when that was so
// before. It returns false if c has come under way, or was not given to Do yet.
func (w *Crew) Withdraw(c *Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.state == inLine {
		w.line.remove(c)
		c.state = dropped
	}
	return c.state == dropped
}

// Stalled is for how long the call that has been under way the longest has not been answered, or 0 as long as that is
// within the patience of that call. A younger call does not count, however small its patience, until it is the oldest.
func (w *Crew) Stalled() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest := w.underWay.front
	if oldest == nil {
		return 0
	}
	if age := time.Since(oldest.started); age > oldest.Patience {
		return age
	}
	return 0
}

// Remaining is for how long it is worth waiting for the end of c before asking again: the rest of its patience when it is
// under way; in line, where its own has not begun, the rest of the patience of the call that has been under way the longest.
// It is 0 when that is over, and when there is nothing to wait for: c has ended, or was withdrawn, or not given to Do.
func (w *Crew) Remaining(c *Call) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	waitedFor := c
	if c.state == inLine && w.underWay.front != nil {
		waitedFor = w.underWay.front
	}
	switch waitedFor.state {
	case inLine: // its worker is about to start
		return c.Patience
	case underWay:
		return max(0, waitedFor.Patience-time.Since(waitedFor.started))
	case unused, answered, dropped:
	}
	return 0
}

// run is a worker.
func (w *Crew) run() {
	for c := w.next(nil); c != nil; c = w.next(c) {
		c.Task.Run()
	}
}

// next notes that the worker is through with done, if it had a call, and gives it the next one in line, or nil when there
// is none: then it is not counted any more and has to end.
func (w *Crew) next(done *Call) *Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	if done != nil {
		w.underWay.remove(done)
		done.state = answered
	}
	c := w.line.front
	if c == nil {
		w.workers--
		return nil
	}
	w.line.remove(c)
	c.state, c.started = underWay, time.Now()
	w.underWay.push(c)
	return c
}
