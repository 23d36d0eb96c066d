package wait

import (
	"sync"
	"time"
)

// Workers is how many jobs of a [Pool] run at a time.
const Workers = 64

// Task is what a [Job] does. It is an interface, so that a type that knows the details of a call
// can be its task without a closure.
type Task interface {
	// Run makes the call and handles its outcome. It may block for as long as the server does not
	// answer, and may use the pool. It must return: nobody recovers a panic, and runtime.Goexit
	// would take the worker away for good.
	Run()
}

// Func is a function that is a [Task].
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// Job is one call to the server. Give it to one pool, once, and neither change nor reuse it after
// that: the pool looks at it until shortly after its task has returned.
type Job struct {
	Task Task
	// Timeout is how long the job may run before the server counts as stalled.
	Timeout time.Duration

	// Guarded by the mutex of the pool.
	state      jobState
	started    time.Time // when it began to run
	prev, next *Job      // neighbours in the list that the state stands for
}

// jobState is how far a job has come: queued -> running -> done, or queued -> dropped.
type jobState uint8

const (
	unused  jobState = iota // not given to Do yet
	queued                  // in Pool.queue
	running                 // in Pool.running
	done                    // its task has returned
	dropped                 // withdrawn or refused: its task never runs
)

// Pool runs jobs for one server with a bounded number of goroutines, and knows for how long the
// server has not answered, and how long its answers take.
//
// A lock over several servers asks all of them at once and goes on as soon as enough have answered.
// The call to a server that hangs stays behind: nobody can give it up, since the server may still
// carry it out, and its outcome has to be handled. With a goroutine per call, a server that hangs
// for an hour would cost one for every lock taken during that hour. Here it costs at most
// [Workers]:
//
//   - Only [Pool.Do] starts a worker, and only while fewer than Workers exist, under one mutex.
//   - A job that finds no free worker is queued, which costs no goroutine. Its caller takes it out
//     with [Pool.Withdraw] when the answer is of no more use, or asks [Pool.Stalled] first. So the
//     queue is as long as there are callers that still want something.
//
// And no job is forgotten: a worker ends only when the queue is empty, in the same step in which it
// stops being counted. A job is queued either before that step, and is taken, or after it, and has
// a worker started for it. An idle pool has no goroutine, so there is nothing to close.
//
// All methods are safe for concurrent use; none of them waits for the server.
type Pool struct {
	start func(func()) bool
	work  func() // the method run, bound once
	trips roundTrips

	mu      sync.Mutex // guards everything below, and the unexported fields of all jobs
	workers int        // goroutines that have not found the queue empty yet; at most Workers
	queue   jobs       // jobs that wait for a worker, in order of Do; while it has any, workers > 0
	running jobs       // jobs that a worker runs, in order of their start
}

// NewPool returns a pool without goroutines. start runs a function in a goroutine that somebody
// waits for; or it starts nothing and returns false, because the client is closed. It is called
// with the pool's mutex locked: it must not wait, use the pool, or run the function itself.
func NewPool(start func(func()) bool) *Pool {
	p := &Pool{start: start}
	p.work = p.run
	return p
}

// Do runs j, or queues it when Workers are busy. It returns false, and the task never runs, when j
// needs a goroutine and the client is closed. It panics when j was given to Do before, which would
// tie the queue into a knot.
func (p *Pool) Do(j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.state != unused {
		panic("wait: Do called twice with the same Job")
	}
	// Starting a worker under the mutex keeps workers from counting one that turns out not to
	// exist: a job could be left in the queue for it.
	if p.workers < Workers && p.start(p.work) {
		p.workers++
	}
	if p.workers == 0 {
		j.state = dropped
		return false
	}
	j.state = queued
	p.queue.push(j)
	return true
}

// Withdraw takes j out of the queue. It returns true if the task never runs, also when that was so
// before; false if j has begun to run, or was not given to Do yet.
func (p *Pool) Withdraw(j *Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.state == queued {
		p.queue.remove(j)
		j.state = dropped
	}
	return j.state == dropped
}

// Stalled returns for how long the oldest running job has not been answered, or 0 as long as that
// is within its Timeout. A younger job does not count, however small its Timeout.
func (p *Pool) Stalled() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.running.front
	if oldest == nil {
		return 0
	}
	if age := time.Since(oldest.started); age > oldest.Timeout {
		return age
	}
	return 0
}

// Remaining returns for how long it is worth waiting for the end of j before asking again: the rest
// of its Timeout while it runs; while it is queued, and its own has not begun, the rest of the
// Timeout of the oldest running job. It is 0 when that is over, and when there is nothing to wait
// for: j is done, withdrawn, or was not given to Do.
func (p *Pool) Remaining(j *Job) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	awaited := j
	if j.state == queued && p.running.front != nil {
		awaited = p.running.front
	}
	switch awaited.state {
	case queued: // its worker is about to start
		return j.Timeout
	case running:
		return max(0, awaited.Timeout-time.Since(awaited.started))
	case unused, done, dropped:
	}
	return 0
}

// run is a worker.
func (p *Pool) run() {
	for j := p.next(nil); j != nil; j = p.next(j) {
		j.Task.Run()
	}
}

// next ends the worker's last job, if it had one, and returns the next one in the queue, or nil
// when there is none: then the worker is not counted any more and has to end.
func (p *Pool) next(last *Job) *Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last != nil {
		p.running.remove(last)
		last.state = done
	}
	j := p.queue.front
	if j == nil {
		p.workers--
		return nil
	}
	p.queue.remove(j)
	j.state, j.started = running, time.Now()
	p.running.push(j)
	return j
}
